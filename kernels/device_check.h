// A short look at whether a device computes what the operations mean, before a user's model is given to it: a
// driver that does not fit the program, or a chip that is damaged, answers with numbers like any other.
#pragma once

#include "engine/base/result.h"
#include "kernels/backend.h"

namespace octavo::kernels {

// On both, products of so many and of such long rows that a device may compute them in another way, and then
// made-up layers with an output head: a prompt of a few tokens, a decode and a recorded one, with quantised
// and float16 weights, with every part that a model of any architecture may have, and with heads of 128
// numbers. Error kDevice, which names what it was, if numbers differ by more than rounding explains, or
// another token is drawn from logits. Leaves the device with scratch for a small step: reserve_step() comes
// after. Takes some milliseconds.
Result<void> check_device(Backend& device, Backend& definition);

}  // namespace octavo::kernels
