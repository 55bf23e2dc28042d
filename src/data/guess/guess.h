// Guesses how a user's file, folder or data set's name is read, for `dptrain init`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/readers/csv.h"

namespace dpt {

struct DataGuess {
  // A key of the data set in the spec.
  struct Setting {
    std::string key;
    std::string value;  // as YAML; if it is a path, the path itself
    std::string comment;
    bool is_path = false;
  };
  std::string type;  // the data set in a spec: "csv"
  std::string name;  // for the spec: "iris"
  std::vector<Setting> settings;
  // Keys of a separate validation set: its files; empty: there is none. Its other keys are those
  // of the training set.
  std::vector<Setting> validation;
  std::vector<std::string> notes;        // sentences about what was found and left out
  std::vector<std::string> class_names;  // in the order of their classes; empty: they have no names

  Dataset train;
  std::optional<Dataset> test;
  std::optional<int64_t> ignore_index;  // the label of targets without a class; empty: none
  // For the inputs, by their first dimension, bytes as 0..1; one number if there are too many
  // columns to list. Empty: inputs need no normalization, or a key of the data set asks for it.
  std::vector<double> mean, std;
  int64_t measured = 0;                         // of so many samples
  std::vector<double> target_mean, target_std;  // of targets that are values, likewise
  bool is_table = false;                        // a text table
  bool standardizes = false;                    // a key of the data set standardizes the inputs

  bool has_test() const { return test.has_value(); }
};

struct GuessQuery {
  std::string path;  // a file, a folder, or the name of a built-in data set
  // The rest is for text tables only.
  std::string target{};  // the target columns, with commas between them; empty: the last
  CsvFormat::HeaderLine header = CsvFormat::HeaderLine::automatic;
  char decimal = '\0';  // the decimal mark; 0: the file decides
  // Columns that are no inputs, and those whose fields are categories, with commas between them.
  std::string exclude{}, categories{};
  bool drops_missing = false;          // leaves lines without a value out, also of the target
  bool drops_missing_targets = false;  // leaves lines without a target out
  bool fills_missing = false;  // inputs without a value get the mean, also if no file has such
  // Texts of the target that stand for missing values elsewhere, such as None, are classes.
  bool missing_is_class = false;
  bool asks_for_table() const {
    return !target.empty() || drops_missing || drops_missing_targets || fills_missing ||
           missing_is_class || decimal != '\0' || !exclude.empty() || !categories.empty() ||
           header != CsvFormat::HeaderLine::automatic;
  }
};

// Reads as much of the data as the guess needs, and loads them as training would. Throws
// Error{data} or Error{spec} that says what could not be guessed and what to do.
DataGuess guess_data(const GuessQuery& query);

// The parts of guess_data(): each returns everything but train, test and the statistics.
DataGuess guess_csv(const GuessQuery& query);
DataGuess guess_images(const std::string& folder);
// Adds the size to which images are brought, and what is to be known of the files, of which some
// are read. skips: images are left out in any case.
void add_image_settings(DataGuess& guess, const std::vector<std::string>& files,
                        bool skips = false);
DataGuess guess_arrays(const std::string& path);  // a folder of .npy or IDX files, or one .npy
bool holds_arrays(const std::string& folder);     // .npy or IDX files
// Says how to save the arrays of an .npz file.
std::string npz_problem(const std::string& path);
// The label that seems to mark targets without a class, in the file of an `npy` data set with
// several integers per sample: a single negative one, or 255 if the others are far below. Empty:
// none does. Throws Error{data} that says how to convert them if all are 0 or 255.
std::optional<int64_t> ignored_label(const DataGuess& guess);
// Sets the means and standard deviations from at most some thousand samples of `train`.
void measure_data(DataGuess& guess);

// A text as a YAML scalar, quoted only if it must be.
std::string yaml_scalar(std::string_view text);

}  // namespace dpt
