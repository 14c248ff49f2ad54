// Records as rows of the store's tables (schema.h), and back. What stands in a row is checked as it is read:
// a file may have been made by anybody.
#pragma once

#include "app/store/database.h"
#include "app/store/records.h"
#include "engine/base/result.h"

namespace octavo::app {

// Inside the transaction of the caller.
Result<void> write_change(Database& database, const StoreChange& change);

Result<StoreContents> read_contents(Database& database);

// The whole tree. An answer that has not ended is marked interrupted: whoever wrote it is gone. In the place
// of a message that is missing from a damaged file stands one that says so. An Error of kind kNotFound when
// there is no such chat.
Result<Chat> read_chat(Database& database, ChatId chat_id);

// The same without texts: who stands below whom, and which is chosen.
Result<Chat> read_tree(Database& database, ChatId chat_id);

}  // namespace octavo::app
