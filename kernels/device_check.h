// A short look at whether a device computes what the operations mean, before a user's model is given to it: a
// driver that does not fit the program, or a chip that is damaged, answers with numbers like any other.
#pragma once

#include "engine/base/result.h"
#include "kernels/backend.h"

namespace octavo::kernels {

// Runs made-up layers with an output head on both: a prompt of a few tokens and a decode, with quantised and
// float16 weights, and with every part that a model of any architecture may have. Error kDevice if the logits
// differ by more than rounding explains, or another token is drawn from them. Leaves the device with
// scratch for that small step: reserve_step() comes after. Takes some milliseconds.
Result<void> check_device(Backend& device, Backend& definition);

}  // namespace octavo::kernels
