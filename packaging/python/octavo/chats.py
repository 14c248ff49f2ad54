"""Chats as OpenAI's clients write them, in the words of the engine."""
import json
from typing import Any, Dict, List, Optional, Sequence

Message = Dict[str, Any]


def chat_of(messages: Sequence[Message], *, add_generation_prompt: bool, continue_final_message: bool,
            tools: Optional[List[dict]] = None, template_values: Optional[dict] = None) -> dict:
    """For _engine: plain values of one chat."""
    if continue_final_message and add_generation_prompt:
        raise ValueError("continue_final_message=True needs add_generation_prompt=False: an answer goes on, or one begins")
    return {"messages": [_message_of(message) for message in messages], "add_generation_prompt": bool(add_generation_prompt),
            "continue_final_message": bool(continue_final_message), "tools": json.dumps(tools) if tools else "",
            "template_values": dict(template_values or {})}


def _message_of(message: Message) -> dict:
    return {"role": message["role"], "content": _text_of(message.get("content")), "tool_call_id": message.get("tool_call_id") or "",
            "tool_calls": [_call_of(call) for call in message.get("tool_calls") or []]}


def _text_of(content) -> str:
    """A text, nothing (beside calls), or a list of parts that are texts."""
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if not isinstance(part, str) and part.get("type") not in ("text", "input_text", "output_text"):
            raise ValueError(f"a message has a part of the type {part.get('type')!r}: this engine reads text only")
    return "\n".join(part if isinstance(part, str) else part["text"] for part in content)


def _call_of(call: dict) -> dict:
    function = call["function"]
    arguments = function.get("arguments") or {}
    return {"id": call.get("id") or "", "name": function["name"],
            "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}
