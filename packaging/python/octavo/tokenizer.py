"""The model's tokenizer, with the names of transformers as far as the engine has them."""
from typing import Any, List, Optional, Sequence, Union

from .chats import chat_of


class Tokenizer:
    """What LLM.get_tokenizer() gives. Any thread may call it."""

    def __init__(self, engine, description: dict):
        self._engine = engine
        self.vocab_size: int = description["vocabulary_size"]
        self.model_max_length: int = description["context_length"]
        self.bos_token_id: Optional[int] = description["bos_token_id"]
        self.eos_token_id: Optional[int] = description["eos_token_id"]
        self.chat_template: Optional[str] = description["chat_template"] or None

    def __len__(self) -> int:
        return self.vocab_size

    @property
    def bos_token(self) -> Optional[str]:
        return self._text_of(self.bos_token_id)

    @property
    def eos_token(self) -> Optional[str]:
        return self._text_of(self.eos_token_id)

    def encode(self, text: str, add_special_tokens: bool = True) -> List[int]:
        """Special tokens in the text count as such."""
        return self._engine.encode(text, add_special_tokens)

    def decode(self, token_ids: Union[int, Sequence[int]], skip_special_tokens: bool = False) -> str:
        ids = [token_ids] if isinstance(token_ids, int) else [int(token) for token in token_ids]
        return self._engine.decode(ids, skip_special_tokens)

    def apply_chat_template(self, conversation: Sequence[dict], tools: Optional[List[dict]] = None, *, tokenize: bool = True,
                            add_generation_prompt: bool = False, continue_final_message: bool = False,
                            **template_values: Any) -> Union[str, List[int]]:
        """The prompt of a chat: token ids, or its text. Further names are values that the template reads (enable_thinking)."""
        chat = chat_of(conversation, add_generation_prompt=add_generation_prompt, continue_final_message=continue_final_message,
                       tools=tools, template_values=template_values)
        return self._engine.encode_chat(chat) if tokenize else self._engine.render_chat(chat)

    def _text_of(self, token_id: Optional[int]) -> Optional[str]:
        return None if token_id is None else self._engine.decode([token_id], False)
