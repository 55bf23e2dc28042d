// Guesses about folders of images, and about tables that name images.
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "data/guess/guess.h"
#include "data/readers/image.h"
#include "data/spread_rows.h"
#include "guess_texts.h"
#include "paths.h"

namespace dpt {
namespace {

TEST_CASE("images: one folder per class, with and without splits" * doctest::skip(!reads_png())) {
  const std::string image = read_file(test_file("fixtures/images/png/rgb.png"));
  const Folder folder;
  for (const char* name : {"train/cat/1.png", "train/cat/2.png", "train/dog/1.png",
                           "valid/cat/1.png", "test/cat/1.png", "test/dog/1.png"})
    folder.write(name, image);
  const DataGuess split = guess_data({.path = folder.path()});
  CHECK(has(settings_text(split), "path=train, test_path=test, resize=["));
  CHECK(has(split.validation.at(0).value, "valid"));
  CHECK(split.class_names == std::vector<std::string>{"cat", "dog"});
  CHECK(split.train.size() == 3);
  CHECK(split.test->size() == 2);
  CHECK(split.mean.size() == 3);
  CHECK(*std::ranges::max_element(split.mean) <= 1);
  CHECK(!guess_data({.path = folder.file("train")}).has_test());
  // A damaged image is left out, and files of other types are counted.
  folder.write("train/dog/2.png", image.substr(0, 60));
  folder.write("train/dog/3.gif", "GIF89a");
  const DataGuess mixed = guess_data({.path = folder.path()});
  CHECK(has(settings_text(mixed), "on_error=skip"));
  CHECK(mixed.train.size() == 3);
  CHECK(has(mixed.notes.at(3), "1 file is left out, as its type is not read: 1 .gif"));
  CHECK(has(mixed.notes.at(2), "2.png cannot be read as PNG"));
}

TEST_CASE("images in folders of classes, below them, and those that are no classes" *
          doctest::skip(!reads_png())) {
  const std::string image = read_file(test_file("fixtures/images/png/rgb.png"));
  const Folder folder;
  for (const char* name :
       {"nest/a/x/1.png", "nest/b/1.png", "nest/c/y/z/1.png", "flat/images/1.png",
        "seg/train/images/1.png", "seg/train/masks/1.png", "outer/inner/a/1.png",
        "outer/inner/b/1.png", "loose/1.png", "loose/2.png", "gifs/a/1.png"})
    folder.write(name, image);
  folder.write("flat/labels.csv", "file,label\n");
  folder.write("gifs/b/1.gif", "GIF89a");
  const auto why = [&](const char* name) {
    return data_error([&] { guess_data({.path = folder.file(name)}); });
  };
  const DataGuess nested = guess_data({.path = folder.file("nest")});
  CHECK(nested.train.class_names == std::vector<std::string>{"a", "b", "c"});
  CHECK(nested.train.size() == 3);
  CHECK(has(why("flat"),
            "flat holds images in one subfolder only, images/, and labels.csv, which is not read; "
            "each class needs a subfolder of its own: move the images to "));
  CHECK(has(why("seg"), "holds images/ and masks/, which look like images and their masks"));
  CHECK(has(why("outer"), "if its subfolders are the classes, write: dptrain init "));
  CHECK(has(why("loose"), "loose holds 2 images but no class folders; each class needs"));
  CHECK(has(why("gifs"), "but files of types that are not read: 1 .gif"));
}

TEST_CASE("classes whose images lie in folders only are doubted" * doctest::skip(!reads_png())) {
  const std::string image = read_file(test_file("fixtures/images/png/rgb.png"));
  const Folder folder;
  for (const char* name : {"plants/apple/rust/1.png", "plants/apple/rot/1.png",
                           "plants/pear/rust/1.png", "some/a/1.png", "some/b/x/1.png"})
    folder.write(name, image);
  CHECK(notes(guess_data({.path = folder.file("plants")}),
              "warning: all images lie in subfolders of the class folders, such as " +
                  folder.file("plants/apple/rot") +
                  "; if the subfolders are the classes, run init on "));
  CHECK_FALSE(notes(guess_data({.path = folder.file("some")}), "all images lie"));
}

TEST_CASE("folders of splits are found by many names" * doctest::skip(!reads_png())) {
  const std::string image = read_file(test_file("fixtures/images/png/rgb.png"));
  for (const auto& [train, test, validation] :
       {std::array{"train_set", "test_set", "val_set"}, std::array{"Train", "Test", "Valid"},
        std::array{"training", "testing", "validation"}, std::array{"train2017", "test1", "val"}}) {
    const Folder folder;
    for (const char* split : {train, test, validation})
      for (const char* name : {"/a/1.png", "/b/1.png"})
        folder.write(split + std::string(name), image);
    const DataGuess g = guess_data({.path = folder.path()});
    CHECK(has(settings_text(g), fmt::format("path={}, test_path={}, ", train, test)));
    CHECK(g.validation.at(0).value == folder.file(validation));
    CHECK(g.class_names == std::vector<std::string>{"a", "b"});
  }
  // A class may have the name of a split.
  const Folder vehicles;
  for (const char* name :
       {"bus/1.png", "car/1.png", "train/1.png", ".ipynb_checkpoints/1.png", "__MACOSX/car/1.png"})
    vehicles.write(name, image);
  CHECK(guess_data({.path = vehicles.path()}).train.classes == 3);
}

TEST_CASE("splits without classes, and images with boxes of objects, are refused with a remedy" *
          doctest::skip(!reads_png())) {
  const std::string image = read_file(test_file("fixtures/images/png/rgb.png"));
  const Folder folder;
  for (const char* name : {"pets/train/cat.0.png",
                           "pets/train/cat.1.png",
                           "pets/train/big dog (0).png",
                           "pets/train/big dog (1).png",
                           "pets/test1/1.png",
                           "sorted/train/cat/1.png",
                           "sorted/train/dog/1.png",
                           "sorted/test1/1.png",
                           "yolo/images/train/1.png",
                           "yolo/images/val/2.png",
                           "robo/train/images/1.png",
                           "robo/valid/images/1.png",
                           "coco/train2017/1.png",
                           "coco/val2017/1.png",
                           "voc/JPEGImages/1.png",
                           "boxes/JPEGImages/1.png",
                           "voc/SegmentationClass/1.png",
                           "voc/SegmentationObject/1.png",
                           "late/test/a/1.png",
                           "late/val/a/1.png"})
    folder.write(name, image);
  for (const char* name : {"yolo/labels/train/1.txt", "robo/train/labels/1.txt",
                           "coco/annotations/instances.json", "boxes/Annotations/1.xml"})
    folder.write(name, "0 0.5 0.5 1 1\n");
  const auto why = [&](const char* name) {
    return data_error([&] { guess_data({.path = folder.file(name)}); });
  };
  const std::string pets = why("pets");
  CHECK(has(pets, "pets/train holds 4 images but no class folders; each class needs its own"));
  CHECK(has(why("yolo"), "yolo holds images and labels/ with .txt files, as for object detection"));
  CHECK(has(why("robo"), "robo/train holds images and labels/ with .txt files, as for object"));
  CHECK(has(why("coco"), "coco holds images and annotations/ with .json files, as for object"));
  CHECK(has(why("boxes"), "boxes holds images and Annotations/ with .xml files, as for object"));
  CHECK(has(why("voc"), "holds JPEGImages/ and SegmentationClass/, which look like images and"));
  CHECK(has(why("late"), "late holds test/, but no train/ with the training set"));
  const DataGuess sorted = guess_data({.path = folder.file("sorted")});
  CHECK(has(sorted.notes.at(2), "test1 is not used as a test set: its 1 image lies in no folders"));
  // The remedy for names that begin with the class works.
  folder.write("pets/train/notes.txt", "");
  const size_t begin = pets.find("(echo "), end = pets.find(", then run: dptrain init '");
  REQUIRE(end != pets.npos);
  CHECK(std::system(pets.substr(begin, end - begin).c_str()) == 0);
  const DataGuess g = guess_data({.path = folder.file("pets/train/classes.csv")});
  CHECK(g.class_names == std::vector<std::string>{"big dog", "cat"});
  CHECK(g.train.size() == 4);
  CHECK(has(why("pets"), "; if " + folder.file("pets/train/classes.csv") + " names them, run: "));
}

TEST_CASE("a table that names images is an image_table" * doctest::skip(!reads_png())) {
  const std::string image = read_file(test_file("fixtures/images/png/rgb.png"));
  const Folder folder;
  std::string classes = "file;label\n", ages = "file,age\n", mixed = "file,size,label\n",
              patients = "image,finding\n", ids = "id,breed\n", windows = "file,label\n",
              tags = "file,day,rain\n";
  for (int i = 0; i < 12; ++i) {
    folder.write(fmt::format("photos/{}.png", i), image);
    folder.write(fmt::format("scans/p{}/view.png", i), image);
    classes += fmt::format("{}.png;{}\n", i, i % 2 == 0 ? "cat" : "the dog");
    ages += fmt::format("photos/{}.png,{}\n", i, 1.5 * i);
    mixed += fmt::format("{}.png,{}.5,{}\n", i, i % 5, i % 2);
    patients += fmt::format("scans/p{}/view.png,{}\n", i, i % 2 == 0 ? "a/b" : "a_b");
    ids += fmt::format("{},{}\n", i, i % 3 == 0 ? "beagle" : "pug");
    windows += fmt::format("scans\\p{}\\view.png,{}\n", i, i % 2);
    tags += fmt::format("{}.png,{},{}\n", i, i % 2, i / 2 % 2);
  }
  const auto guess = [&](const std::string& text, const std::string& target = "") {
    return guess_data({.path = folder.write("t.csv", text), .target = target});
  };
  const std::string gaps = folder.write("gaps.csv", classes + "3.png;\n");
  const DataGuess targets = guess_data({.path = gaps, .drops_missing_targets = true});
  CHECK(has(settings_text(targets), "missing_targets=drop"));
  CHECK(targets.train.size() == 12);
  CHECK(guess_data({.path = gaps, .drops_missing = true}).train.size() == 12);
  struct Case {
    const char* name;
    const std::string& text;
    const char* settings;
  };
  constexpr const char* kSize = "resize=[25, 18]";
  for (const Case& c :
       {Case{"classes", classes,
             "path=t.csv, image=file, targets=label, class_names=[cat, \"the dog\"], "
             "folder=photos, resize=[SIZE], delimiter=\";\""},
        {"values", ages, "path=t.csv, image=file, targets=age, resize=[SIZE]"},
        {"folders", patients,
         "path=t.csv, image=image, targets=finding, class_names=[a/b, a_b], resize=[SIZE]"},
        {"ids", ids,
         "path=t.csv, image=id, targets=breed, class_names=[beagle, pug], folder=photos, "
         "ending=\".png\", resize=[SIZE]"},
        {"backslashes", windows, "path=t.csv, image=file, targets=label, classes=2, resize=[SIZE]"},
        {"no header", "0.png,a\n1.png,b\n2.png,a\n3.png,b\n",
         "path=t.csv, image=\"0\", targets=\"1\", class_names=[a, b], folder=photos, "
         "resize=[SIZE]"},
        {"names last", "label,file\ncat,0.png\ndog,1.png\ncat,2.png\ndog,3.png\n",
         "path=t.csv, image=file, targets=label, class_names=[cat, dog], folder=photos, "
         "resize=[SIZE]"}}) {
    CAPTURE(c.name);
    const DataGuess g = guess(c.text);
    CHECK(g.type == "image_table");
    std::string wanted = c.settings;
    wanted.replace(wanted.find("resize=[SIZE]"), 13, kSize);
    CHECK(settings_text(g) == wanted);
    CHECK(g.train.size() == (c.text.size() > 60 ? 12 : 4));
    CHECK(g.train.inputs.desc.shape.tail(1) == Shape{3, 25, 18});
  }
  const DataGuess labels = guess(tags, "day,rain");
  CHECK(settings_text(labels) ==
        "path=t.csv, image=file, targets=[day, rain], folder=photos, resize=[25, 18]");
  CHECK(labels.train.targets.desc == TensorDesc{DType::f32, {12, 2}});
  const DataGuess others = guess(mixed);
  CHECK(others.type == "image_table");
  CHECK(notes(others,
              "columns not used: 'size'; to train on them instead of the images, add "
              "--exclude file"));
  CHECK(notes(guess_data({.path = folder.file("t.csv"), .exclude = "file"}), "inputs: 1 column"));
  // A test set has its images in a folder of its own.
  for (int i = 0; i < 4; ++i) folder.write(fmt::format("later/n{}.png", i), image);
  folder.write("test.csv", "file,age\nn0.png,1.5\nn1.png,2.5\nn2.png,1\nn3.png,0\n");
  const DataGuess with_test = guess_data(
      {.path = folder.write("train.csv", "file,age\n0.png,1.5\n1.png,2.5\n2.png,3.5\n")});
  CHECK(settings_text(with_test) ==
        "path=train.csv, image=file, test_path=test.csv, targets=age, folder=photos, "
        "test_folder=later, resize=[25, 18]");
  CHECK(with_test.test->size() == 4);
  // One picture beside a table is not named by its ids.
  const Folder plots;
  plots.write("0.png", image);
  std::string numbered = "id,size,label\n", elsewhere = "file,size,label\n",
              nowhere = "file,label\n";
  for (int i = 0; i < 12; ++i) {
    numbered += fmt::format("{},{}.5,{}\n", i, i % 5, i % 2);
    elsewhere += fmt::format("far/{}.png,{}.5,{}\n", i, i % 5, i % 2);
    nowhere += fmt::format("far/{}.png,{}\n", i, i % 2);
  }
  CHECK(notes(guess_data({.path = plots.write("t.csv", numbered)}), "inputs: 1 column"));
  CHECK(
      notes(guess(elsewhere),
            "column 'file' is left out: it holds names of images, such as 'far/0.png' on line 2"));
  CHECK(has(data_error([&] { guess(nowhere); }),
            "t.csv: column 'file' holds names of images, such as 'far/0.png' on line 2, but there "
            "is no such file in " +
                folder.path() +
                " or its subfolders; move the images there, or write a spec whose image_table"));
}

TEST_CASE("images whose names differ in capitals are named" * doctest::skip(!reads_png())) {
  const Folder folder;
  folder.write("photos/Cat 1.PNG", read_file(test_file("fixtures/images/png/rgb.png")));
  folder.write("t.csv", "file,label\ncat 1.png,a\ncat 2.png,b\ncat 3.png,b\n");
  CHECK(has(data_error([&] { guess_data({.path = folder.file("t.csv")}); }),
            "or its subfolders; " + folder.file("photos/Cat 1.PNG") +
                " differs in capitals: use the same ones in the table and in the names"));
  // One of three is there, as it is written.
  folder.write("photos/cat 1.png", read_file(test_file("fixtures/images/png/rgb.png")));
  std::filesystem::remove(folder.file("photos/Cat 1.PNG"));
  CHECK(has(data_error([&] { guess_data({.path = folder.file("t.csv")}); }),
            "or its subfolders; move the images there"));
}

TEST_CASE("some of many rows have each kind among them, also where kinds alternate") {
  CHECK(spread_rows(3, 5) == std::vector<size_t>{0, 1, 2});
  for (const size_t kinds : {2, 3, 4, 5, 8}) {
    std::vector<size_t> counts(kinds);
    size_t last = 0;
    for (const size_t row : spread_rows(1000 * kinds, 200)) {
      CHECK(row >= last);
      last = row;
      ++counts[row % kinds];
    }
    // Three quarters fewer than on average are over four standard deviations.
    for (const size_t n : counts) CHECK(n > 200 / kinds / 4);
  }
}

TEST_CASE("the images of a table are those of its split, and most of them exist" *
          doctest::skip(!reads_png())) {
  const std::string image = read_file(test_file("fixtures/images/png/rgb.png"));
  const Folder folder;
  std::string train = "id,age\n", valid = "id,age\n", gaps = "file,age\n", houses = "id,size,age\n";
  for (int i = 0; i < 12; ++i) {
    folder.write(fmt::format("train/{}.png", i), image);
    if (i < 4) {
      folder.write(fmt::format("test/{}.png", i), image);
      folder.write(fmt::format("valid/{}.png", i), image);
      valid += fmt::format("{},{}.5\n", i, i);
    }
    train += fmt::format("{},{}.5\n", i, i);
    gaps += fmt::format("{},{}.5\n", i == 3 ? "" : fmt::format("train/{}.png", i + i / 9), i);
    houses += fmt::format("{},{}.5,{}.5\n", i + 9, i % 5, i);
  }
  folder.write("valid.csv", valid);
  const DataGuess g = guess_data({.path = folder.write("train.csv", train)});
  CHECK(settings_text(g) ==
        "path=train.csv, image=id, targets=age, folder=train, ending=\".png\", resize=[25, 18]");
  CHECK(g.train.size() == 12);
  REQUIRE(g.validation.size() == 2);
  CHECK(g.validation[1].key == "folder");
  CHECK(g.validation[1].value == folder.file("valid"));
  // Files that do not exist are counted; a line without a name is left out on request.
  const std::string t = folder.write("t.csv", gaps);
  CHECK(has(data_error([&] { guess_data({.path = t}); }),
            "t.csv:5:1: column 'file' is empty on this line; enter the name, or leave such lines "
            "out with `missing: drop`"));
  const DataGuess dropped = guess_data({.path = t, .drops_missing = true});
  CHECK(settings_text(dropped) ==
        "path=t.csv, image=file, targets=age, resize=[25, 18], on_error=skip, missing=drop");
  CHECK(notes(dropped, "warning: 1 of 11 images do not exist, such as " +
                           folder.file("train/12.png") + "; they are left out"));
  CHECK(dropped.train.size() == 10);
  // Few of the ids are names of files.
  CHECK(guess_data({.path = folder.write("houses.csv", houses)}).type == "csv");
}

}  // namespace
}  // namespace dpt
