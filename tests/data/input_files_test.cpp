#include "data/input_files.h"

#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>

#include "base/fail.h"
#include "data/datasets/loading.h"
#include "data/readers/image.h"
#include "paths.h"
#include "skip.h"

namespace dpt {
namespace {

struct Set {
  Choice choice;
  SampleForm form;
};

Set set_of(const std::string& name, const std::string& yaml, const Folder& folder) {
  const DatasetType& type = dataset_type(name);
  Set out;
  out.choice.what = &type;
  out.choice.settings = settings_of(type, yaml, folder.path());
  out.form = form_of(type.load(out.choice.settings, {.folder = folder.path()}));
  return out;
}

using Floats = std::vector<float>;

Floats floats(const Set& set, const std::vector<std::string>& files) {
  return all_of<float>(read_input_files(set.choice, set.form, files).dataset.inputs);
}

// Why files are refused, or why they could not be read.
std::string refusal(const Set& set, const std::vector<std::string>& files) {
  std::string unread;
  const auto read = [&] {
    const InputFiles in = read_input_files(set.choice, set.form, files);
    for (const auto& [file, reason] : in.unread->reasons()) unread += reason;
    if (!unread.empty()) fail(Fault::data, "{}", unread);
  };
  return data_error(read);
}

// A set of numbers [2, 2] without files.
Set numbers(DType type) {
  Set out;
  out.choice.what = &dataset_type("npy");
  out.form.stored = {type, {2, 2}};
  return out;
}

}  // namespace

TEST_CASE("columns of a CSV file are found by their names, or by their number") {
  const Folder folder;
  folder.write("t.csv", "a,b,kind\n1,2,0\n3,4,1\n");
  const Set set = set_of("csv", "{path: t.csv, targets: kind, classes: 2}", folder);
  CHECK(floats(set, {folder.write("1.csv", "b,note,a\n5,text,6\n")}) == Floats{6, 5});
  CHECK(floats(set, {folder.write("2.csv", "7,8\n9,10\n")}) == Floats{7, 8, 9, 10});
  CHECK(floats(set, {folder.write("3.csv", "7,8,1\n")}) == Floats{7, 8});
  CHECK(floats(set, {folder.file("1.csv"), folder.file("2.csv")}) == Floats{6, 5, 7, 8, 9, 10});
  CHECK(has(refusal(set, {folder.write("4.csv", "a,c\n1,2\n")}), "has no column 'b'"));
  CHECK(
      has(refusal(set, {folder.write("5.csv", "1,2,3,4\n")}),
          "has 4 columns, but the model takes 2; give the 3 columns of the training file, or the 2 "
          "input columns alone (0-1, counted from 0), or a header with their names"));
  folder.write("plain.csv", "0,1,2\n1,3,4\n");
  const Set plain = set_of("csv", "{path: plain.csv, targets: 0, classes: 2}", folder);
  CHECK(floats(plain, {folder.file("2.csv")}) == Floats{7, 8, 9, 10});
  CHECK(floats(plain, {folder.file("3.csv")}) == Floats{8, 1});  // its columns 1 and 2
  CHECK(has(refusal(plain, {folder.file("1.csv")}),
            "the training file had none; remove the line, and give the 3 columns of the training "
            "file, or the 2 input columns alone (1-2, counted from 0)"));
  // Keys of a spec are no remedy.
  CHECK(has(refusal(set, {folder.write("6.csv", "a,b\n1,NA\n")}),
            "'NA' in column 'b' stands for a missing value; enter a value, delete the line, or "
            "train with `missing: mean`, which fills such fields"));
  CHECK(has(refusal(set, {folder.write("7.csv", "a,b\n1,x4\n")}),
            "'x4' in column 'b' is not a number; the model takes a number: correct it"));
  CHECK(has(refusal(set, {folder.write("8.csv", "a,b\n1,2;3\n")}),
            "if ';' stands between the numbers of this file, write ',' instead, as in the training "
            "file"));
}

TEST_CASE("what is wrong with a CSV file can be put right in the file") {
  const Folder folder;
  folder.write("t.csv", "a,b,kind\n1,2,0\n3,4,1\n");
  folder.write("texts.csv", "red,big,x\nblue,small,y\nred,small,y\nblue,big,x\n");
  const std::string keys = ", classes: auto, categories: auto}";
  const Set set = set_of("csv", "{path: t.csv, targets: kind" + keys, folder);
  const Set texts = set_of("csv", "{path: texts.csv, targets: 2" + keys, folder);
  CHECK(
      has(refusal(set, {folder.write("1.csv", "a,b,b\n1,2,3\n")}),
          "1.csv has 2 columns 'b': 1, 2, counted from 0, where the training file has one; rename "
          "the other column, or leave it out"));
  CHECK(
      has(refusal(set, {folder.write("2.csv", "a;b\n1;2\n")}),
          "2.csv has no column 'a'; it has 1 column: a;b; ';' seems to stand between its fields"));
  CHECK(has(refusal(set, {folder.write("3.csv", "1;2\n")}),
            "3.csv has 1 column, but the model takes 2; ';' seems to stand between its fields, "
            "which is not the `delimiter` of the spec: save the file with that one"));
  const auto note = [](const Set& of, const std::string& path) {
    const InputFiles in = read_input_files(of.choice, of.form, std::vector{path});
    CHECK(in.notes.size() == 1);
    return in.notes.empty() ? "" : in.notes[0];
  };
  const std::string again = "red,big\nred,small\nblue,big\n";
  CHECK(has(note(texts, folder.write("4.csv", again)), "; if it names the columns, remove it"));
  folder.write("named.csv", "colour,size,y\nred,big,0\nblue,small,1\nred,small,1\n");
  const Set named = set_of("csv", "{path: named.csv" + keys, folder);
  CHECK(has(note(named, folder.file("4.csv")),
            "; if it names the columns, take the training file's names"));
  const Set plain = numbers(DType::f32);
  CHECK(has(refusal(plain, {folder.write("5.csv", "a,b,c,d\n")}),
            "if it is a sample, put a line with names above it"));
  // Every message names keys for a new training only.
  for (const char* text : {"a,b\n1,2,3\n", "a,b\n1,2%\n", "a,b\n1,2024-01-01\n", "a,b\n1,1;2\n",
                           "a,b\n1,\"1,234\"\n", "a,b\n", "", "a\n1\n", "sep=;\na;b\n1;2\n"}) {
    CAPTURE(text);
    const std::string message = refusal(set, {folder.write("6.csv", text)});
    for (const char* key : {"`header", "`exclude", "`categories", "missing: drop", "`decimal"})
      CHECK_FALSE_MESSAGE(has(message, key), message);
  }
}

TEST_CASE("a CSV file for a run of another data set has all numbers of a sample") {
  const Folder folder;
  const Set set = numbers(DType::f32);
  const InputFiles in =
      read_input_files(set.choice, set.form, std::vector{folder.write("a.csv", "1,2,3,4\n")});
  CHECK(in.dataset.inputs.desc.shape == Shape{1, 2, 2});
  CHECK(has(refusal(set, {folder.write("b.csv", "1,2\n")}),
            "has 2 columns, but a sample of this run has 4 numbers"));
}

TEST_CASE("arrays are standardized as the training data was") {
  const Folder folder;
  folder.write("x.npy", npy<double>("<f8", "(2, 2)", {1700000000001, 5, 1700000000003, 5}));
  folder.write("y.npy", npy<float>("<f4", "(2,)", {1, 2}));
  const Set set = set_of("npy", "{inputs: x.npy, targets: y.npy, standardize: true}", folder);
  CHECK(floats(set, {folder.write("1.npy", npy<double>("<f8", "(1, 2)", {1700000000004, 6}))}) ==
        Floats{2, 1});
  CHECK(floats(set, {folder.write("2.npy", npy<double>("<f8", "(2,)", {1700000000000, 4}))}) ==
        Floats{-2, -1});
  CHECK(floats(set, {folder.write("3.csv", "1700000000006,5\n")}) == Floats{4, 0});
  CHECK(has(refusal(set, {folder.write("4.npy", npy<double>("<f8", "(3,)", {1, 2, 3}))}),
            "holds [3] f32, but the samples of this run are [2] f32"));
}

TEST_CASE("arrays have samples of the run's shape and type") {
  const Folder folder;
  const std::string one = folder.write("1.npy", npy<float>("<f4", "(2, 2)", {1, 2, 3, 4}));
  const std::string two =
      folder.write("2.npy", npy<float>("<f4", "(2, 2, 2)", {5, 6, 7, 8, 9, 10, 11, 12}));
  const Set set = numbers(DType::f32);
  CHECK(floats(set, {one}) == Floats{1, 2, 3, 4});
  const InputFiles in = read_input_files(set.choice, set.form, std::vector{two, one});
  CHECK(in.dataset.size() == 3);
  CHECK(in.origin(1).file == two);
  CHECK(in.origin(1).row == 1);
  CHECK(in.origin(2).file == one);
  CHECK(in.origin(2).row == 0);
  CHECK(refusal(numbers(DType::u8), {one}) ==
        one +
            " holds [2, 2] f32, but the samples of this run are [2, 2] u8: bytes as they are "
            "before transforms");
  CHECK(has(refusal(set, {folder.write("3.npy", npy<int64_t>("<i8", "(2, 2)", {1, 2, 3, 4}))}),
            "holds [2, 2] integers, but the samples of this run are [2, 2] f32"));
  const std::string idx = folder.write("x-idx2-ubyte", idx_bytes({2, 2}));
  Set bytes = numbers(DType::u8);
  CHECK(all_of<uint8_t>(read_input_files(bytes.choice, bytes.form, std::vector{idx}).dataset.inputs)
            .size() == 4);
  CHECK(has(refusal(set, {folder.write("a.bin", "x")}), "has an unknown file type"));
  CHECK(refusal(set, {folder.file("nodir")}) ==
        folder.file("nodir") + " does not exist: there is no such file or folder");
  CHECK(has(refusal(set, {one, folder.write("a.png", "x")}), "cannot be mixed"));
  CHECK(has(refusal(set, {folder.file("a.png")}),
            "is an image, but the samples of this run are [2, 2] f32; image files can be read"));
}

TEST_CASE("tokens must be those of the training data") {
  const Folder folder;
  Set set = numbers(DType::i32);
  set.form.tokens = 3;
  CHECK(refusal(set, {folder.write("1.npy", npy<int32_t>("<i4", "(2, 2)", {0, 1, 2, 0}))}).empty());
  CHECK(has(refusal(set, {folder.write("2.npy", npy<int32_t>("<i4", "(2, 2)", {0, 1, 3, 0}))}),
            "the token 3, but the model was trained with 3 tokens"));
}

TEST_CASE("images become the samples of a run of other images") {
  if (skip_without(reads_png(), "libpng")) return;
  const Folder folder;
  const std::string png = test_file("fixtures/images/png/palette.png");
  Set set = numbers(DType::u8);
  set.form.stored = {DType::u8, {1, 4, 4}};
  const InputFiles in = read_input_files(set.choice, set.form, std::vector{png});
  std::vector<uint8_t> pixels(16);
  in.dataset.reader->read(0, std::as_writable_bytes(std::span(pixels)));
  CHECK(*std::ranges::max_element(pixels) > 0);
  // Gray images [H, W] of an array are read alike.
  Set flat = numbers(DType::u8);
  flat.form.stored = {DType::u8, {4, 4}};
  const InputFiles gray = read_input_files(flat.choice, flat.form, std::vector{png});
  CHECK(gray.dataset.inputs.desc.shape == Shape{1, 4, 4});
  std::vector<uint8_t> same(16);
  gray.dataset.reader->read(0, std::as_writable_bytes(std::span(same)));
  CHECK(same == pixels);
  std::filesystem::copy(png, folder.file("b.png"));
  std::filesystem::copy(png, folder.file("a.png"));
  folder.write("notes.txt", "no image");
  const InputFiles all = read_input_files(set.choice, set.form, std::vector{folder.path()});
  CHECK(all.files == std::vector{folder.file("a.png"), folder.file("b.png")});
  CHECK(all.left_out == std::vector{folder.file("notes.txt")});
  CHECK(all.dataset.size() == 2);
  const std::vector named{folder.file("a.png"), folder.file("c.gif"), folder.file("b.png")};
  folder.write("c.gif", "GIF89a");
  const InputFiles starred = read_input_files(set.choice, set.form, named);
  CHECK(starred.files == named);
  CHECK(starred.left_out.empty());
  for (const uint32_t row : {0U, 1U, 2U})
    starred.dataset.reader->read(row, std::as_writable_bytes(std::span(pixels)));
  REQUIRE(starred.unread->reasons().size() == 1);
  CHECK(starred.unread->reasons().at(1) ==
        folder.file("c.gif") +
            " is not a JPEG, PNG, BMP, PPM, PGM, WebP or TIFF image; convert it to PNG, or remove "
            "it");
  // A folder of classes, as in training.
  const Folder classes;
  for (const char* name : {"cat", "dog"}) {
    std::filesystem::create_directory(classes.file(name));
    std::filesystem::copy(png, classes.file(name) + "/1.png");
  }
  const InputFiles below = read_input_files(set.choice, set.form, std::vector{classes.path()});
  CHECK(below.files == std::vector{classes.file("cat/1.png"), classes.file("dog/1.png")});
}

}  // namespace dpt
