// confusion_matrix.csv as a table of HTML.
#pragma once

#include <string>

namespace dpt {

// Rows are actual classes, columns are predicted ones; the darker, the larger the share of its
// row. A last column has the share of each class that is right. The file's first row and column may
// be names of classes. Empty if the text is no square matrix of counts or has more than 60 classes.
std::string confusion_table(const std::string& csv);

}  // namespace dpt
