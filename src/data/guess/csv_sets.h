// The test and validation files beside a training file.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "data/guess/csv_columns.h"
#include "data/guess/guess.h"
#include "data/readers/csv.h"

namespace dpt {

// The first usable file beside the training file with one of the words in its name; empty: none.
// Notes say why others are not used.
std::string set_beside(DataGuess& g, const std::string& path, std::string_view set,
                       std::initializer_list<std::string_view> words, const CsvFormat& format,
                       const ScannedColumns& t);

// The first file beside the training file in which an input lacks a value; empty: none. It need not
// be usable as a set: files without targets are for predictions.
std::string gaps_beside(const std::string& path, const CsvFormat& format, const ScannedColumns& t);

}  // namespace dpt
