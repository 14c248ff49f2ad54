CREATE TABLE chats (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  title TEXT NOT NULL,
  shown_title TEXT NOT NULL,
  system_prompt TEXT NOT NULL,
  sampling TEXT NOT NULL,
  draft TEXT NOT NULL,
  folder INTEGER NOT NULL,
  pinned INTEGER NOT NULL,
  position INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  trashed_ms INTEGER,
  active_root_child INTEGER NOT NULL
, context_policy TEXT NOT NULL DEFAULT 'roll', model_path TEXT NOT NULL DEFAULT '', template_values TEXT NOT NULL DEFAULT '{}') STRICT;
CREATE TABLE messages (
  number INTEGER PRIMARY KEY,
  chat INTEGER NOT NULL,
  id INTEGER NOT NULL,
  parent INTEGER NOT NULL,
  active_child INTEGER NOT NULL,
  role TEXT NOT NULL,
  finish_reason TEXT,
  seed INTEGER,
  interrupted INTEGER NOT NULL,
  model TEXT NOT NULL,
  error TEXT NOT NULL,
  metrics TEXT,
  content TEXT NOT NULL,
  token_ids BLOB NOT NULL, created_ms INTEGER NOT NULL DEFAULT 0, context_full INTEGER NOT NULL DEFAULT 0, stop_text TEXT NOT NULL DEFAULT '', edited INTEGER NOT NULL DEFAULT 0, erased INTEGER NOT NULL DEFAULT 0,
  UNIQUE (chat, id)
) STRICT;
CREATE TABLE answer_pieces (
  number INTEGER PRIMARY KEY,
  chat INTEGER NOT NULL,
  message INTEGER NOT NULL,
  content_begin INTEGER NOT NULL,
  content TEXT NOT NULL,
  tokens_begin INTEGER NOT NULL,
  token_ids BLOB NOT NULL,
  UNIQUE (chat, message, tokens_begin, content_begin)
) STRICT;
CREATE TABLE folders (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  position INTEGER NOT NULL
) STRICT;
CREATE TABLE presets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  system_prompt TEXT NOT NULL,
  sampling TEXT NOT NULL
, template_values TEXT NOT NULL DEFAULT '{}') STRICT;
CREATE TABLE summaries (
  number INTEGER PRIMARY KEY,
  chat INTEGER NOT NULL,
  message INTEGER NOT NULL,
  content TEXT NOT NULL,
  UNIQUE (chat, message)
) STRICT;
INSERT INTO chats VALUES (1, '', 'Hi there', 'Be kind.', '{"temperature":0.7,"top_p":0.95,"max_tokens":1024}', 'a draft', 1, 1, 1, 1790000000000, 1790000000500, NULL, 1, 'summarise', '/models/m.gguf', '{"enable_thinking":false}');
INSERT INTO chats VALUES (2, 'Second', 'Second', '', '{}', '', 0, 0, 2, 1790000001000, 1790000001000, 1790000002000, 0, 'stop', '', '{}');
INSERT INTO messages VALUES (1, 1, 1, 0, 3, 'user', NULL, NULL, 0, '', '', NULL, 'Hi there', x'', 1790000000100, 0, '', 0, 0);
INSERT INTO messages VALUES (2, 1, 2, 1, 0, 'assistant', 'stop', -1, 0, 'SmolLM2 135M', '', '{"num_prompt_tokens":9,"num_cached_tokens":0,"queue_us":1,"ttft_us":2,"tpot_us":3,"e2e_us":4,"num_preemptions":0,"num_draft_tokens":0,"num_accepted_tokens":0}', 'Hello! How can I help?', x'0100000000010000', 1790000000200, 0, 'END', 1, 0);
INSERT INTO messages VALUES (3, 1, 3, 1, 0, 'assistant', NULL, 7, 0, '', '', NULL, 'Half ', x'05000000', 1790000000300, 0, '', 0, 0);
INSERT INTO messages VALUES (4, 1, 4, 2, 0, 'user', NULL, NULL, 0, '', '', NULL, '', x'', 0, 0, '', 0, 1);
INSERT INTO answer_pieces VALUES (1, 1, 3, 5, 'an answ', 1, x'06000000');
INSERT INTO summaries VALUES (1, 1, 1, 'They said hi.');
INSERT INTO folders VALUES (1, 'Work', 1);
INSERT INTO presets VALUES (1, 'Terse', 'Answer in one sentence.', '{"temperature":0}', '{"enable_thinking":false}');
PRAGMA application_id = 1329812566;
PRAGMA user_version = 5;
