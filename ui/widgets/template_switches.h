// What a model's chat template can be told about thinking, as alternatives side by side.
#pragma once

#include "engine/api/template_values.h"
#include "ui/frame.h"

namespace octavo::ui {

// A title and the choices. True when another one was chosen: `values` tells it then. The usual choice is not
// told at all, since another model may call it otherwise. `when`: from when on it counts, a sentence or
// nothing.
bool template_switch(const Frame& frame, const TemplateSwitch& one, TemplateValues& values, const char* when,
                     float width);

}  // namespace octavo::ui
