// Numbers that are places in a table of each output's own, and outliers beside them (Kim et al. 2023,
// "SqueezeLLM: Dense-and-Sparse Quantization", arXiv:2306.07629).
#pragma once

#include <memory>
#include <string>

#include "engine/model/quantised/quantised_matrix.h"

namespace octavo::model {

// qweight [columns packed, rows] and lookup_table [rows, 2^bits]; perhaps outliers, which are added: row i
// those at rows[i] and before rows[i + 1] of cols and vals; and, of the rows full_row_indices, full_rows
// [columns, number of them]. Errors as open_quantised_matrix().
//
// No panel keeps a table for each row: rows are made 16- or 32-bit floats, whichever holds them exactly, and
// take the memory of these.
Result<std::unique_ptr<QuantisedMatrix>> open_value_tables(const QuantisationConfig& config,
                                                           const std::string& module, const FindTensor& find);

}  // namespace octavo::model
