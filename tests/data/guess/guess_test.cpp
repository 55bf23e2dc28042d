#include "data/guess/guess.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "base/units.h"
#include "data/tables.h"
#include "guess_texts.h"
#include "paths.h"

namespace dpt {
namespace {

std::string guess_text(const std::string& csv, const std::string& target = "") {
  const Folder folder;
  return settings_text(guess_csv({.path = folder.write("t.csv", csv), .target = target}));
}
std::string why_not(const std::string& csv, const std::string& target = "") {
  return data_error([&] { guess_text(csv, target); });
}
// `rows` lines "i%3,i%2" and so on, from a format of the index.
template <class F>
std::string table(const std::string& header, int rows, F&& line) {
  std::string out = header;
  for (int i = 0; i < rows; ++i) out += std::string(line(i)) + "\n";
  return out;
}

TEST_CASE("a CSV's last column is the target: few whole numbers or words are classes") {
  const auto with = [](auto&& target) {
    return guess_text(
        table("a,t\n", 40, [&](int i) { return std::to_string(i * 7 % 5) + "," + target(i); }));
  };
  CHECK(with([](int i) { return std::to_string(i % 3); }) ==
        "path=t.csv, targets=t, classes=3, standardize=true");
  // Classes that are not 0, 1, 2, ... keep their texts, ordered as numbers.
  CHECK(with([](int i) { return i % 2 == 0 ? "10" : "9"; }) ==
        "path=t.csv, targets=t, class_names=[\"9\", \"10\"], standardize=true");
  CHECK(with([](int i) { return i % 2 == 0 ? "no" : "a b"; }) ==
        "path=t.csv, targets=t, class_names=[\"a b\", \"no\"], standardize=true");
  CHECK(with([](int i) { return std::to_string(i) + ".5"; }) ==
        "path=t.csv, targets=t, standardize=true");
  CHECK(with([](int i) { return std::to_string(i * 3); }) ==
        "path=t.csv, targets=t, standardize=true");  // many
}

TEST_CASE("delimiters, files without a header, and a target of one's choice") {
  const auto line = [](const char* between) {
    return
        [between](int i) { return std::to_string(i % 2) + between + std::to_string(i % 7) + ".5"; };
  };
  CHECK(guess_text(table("", 30, line(";")), "0") ==
        "path=t.csv, targets=\"0\", classes=2, standardize=true, delimiter=\";\"");
  CHECK(has(guess_text(table("", 30, line("\t"))), "delimiter=tab"));
  CHECK(guess_text(table("yes,b\n", 30, line(",")), "yes") ==
        "path=t.csv, targets=\"yes\", classes=2, standardize=true");
  CHECK(has(why_not("a,b\n1,2\n3,4\n", "c"), "has no column 'c'"));
  CHECK(has(why_not("1 2\n3 4\n"), "is not a table"));
}

TEST_CASE("columns of few texts are categories, others are left out and named") {
  const Folder folder;
  const std::string csv = table("id,x,city,color,name,gap,none,t\n", 40, [](int i) {
    return std::to_string(i + 1) + "," + std::to_string(i % 5) + ",Ulm," +
           (i == 7       ? ""
            : i % 3 == 0 ? "red"
                         : "blue") +
           ",n" + std::to_string(i) + "," + (i == 3 ? "NA" : "1") + ",," + std::to_string(i % 2);
  });
  const DataGuess g = guess_data({.path = folder.write("t.csv", csv)});
  CHECK(settings_text(g) ==
        "path=t.csv, targets=t, classes=2, exclude=[id, city, name, gap, \"none\"], "
        "categories=[color], "
        "missing=mean, standardize=true");
  CHECK(notes(g, "column 'id' is left out: it is named as an index"));
  CHECK(notes(g, "'city' is left out: it has the same value in all lines"));
  CHECK(
      notes(g, "'name' is left out: its 40 different texts, such as 'n0' on line 2, are too many"));
  CHECK(notes(g, "'none' is left out: it has no value in any line"));
  CHECK(notes(g, "'gap' is left out: it has the same value in all lines that have one"));
  CHECK(notes(g, "inputs: 1 column of numbers, 1 of texts"));
  CHECK(notes(g, "1 value missing"));
  CHECK(g.train.inputs.sample() == Shape{3});
}

TEST_CASE("a first column that is named as a target is mentioned") {
  const Folder folder;
  const std::string rows =
      table("", 20, [](int i) { return fmt::format("{},{}.5", i % 2, i % 7); });
  const auto guess = [&](const std::string& header, const std::string& target) {
    return guess_csv({.path = folder.write("t.csv", header + rows), .target = target});
  };
  const std::string hint = "the target is the last column; if it is the first, use --target Label";
  CHECK(notes(guess("Label,x\n", ""), hint));
  CHECK(!notes(guess("Label,x\n", "Label"), hint));
  CHECK(!notes(guess("a,x\n", ""), "the target is the last column"));
}

TEST_CASE("what a CSV does not tell is an error with a remedy") {
  CHECK(has(why_not(table("a,t\n", 20, [](int i) { return "1,w" + std::to_string(i); })),
            "has 20 different values of text in 20 lines, so they cannot be classes; choose "
            "another column"));
  CHECK(has(why_not(table("a,t\n", 20, [](int) { return "1,5"; })), "the same value in all lines"));
  CHECK(has(why_not(table("a,t\n", 20, [](int i) { return i == 4 ? "1," : "1,w"; })),
            "t.csv:6:3: the target column 't' is empty on this line; leave such lines out with "
            "--missing-targets drop, or choose another column"));
  CHECK(has(why_not(table("a,t\n", 20, [](int i) { return i % 4 == 2 ? "1,NA" : "1,2.5"; })),
            "t.csv:4:3: the target column 't' has 'NA', which stands for a missing value, on this "
            "line and on 4 others; leave such"));
  CHECK(has(why_not(table("a,t\n", 20, [](int i) { return "x," + std::to_string(i % 2); })),
            "has no column to predict from other than the target 't'; column 'a' is left out: it "
            "has the same value"));
  CHECK(
      has(why_not(table("a,id,t\n", 20, [](int i) { return "x,7," + std::to_string(i % 2); })),
          "target 't'; column 'a' is left out: it has the same value in all lines; column 'id' is "
          "left out: it is named as an index"));
  CHECK(has(why_not("a,b\n1,2\n1,2,3\n"), "t.csv:3:1: 3 fields, where the first line has 2"));
  CHECK(has(why_not("a,b\n1,2\n"), "1 sample; training needs at least 2"));
}

TEST_CASE("inputs get the mean if any file beside the training file lacks some, or on request") {
  const std::string full = table(
      "a,b,y\n", 30, [](int i) { return fmt::format("{}.5,{}.25,{}.75", i * 7 % 5, i % 3, i); });
  struct Case {
    std::string name, text;
    bool fills;
  };
  for (const Case& c :
       std::vector<Case>{{"test.csv", "a,b,y\n1,2,3\n,5,6\n", true},
                         {"val.csv", "y,a,b\n1,2,3\n4,NA,6\n", true},
                         {"test.csv", "a,b\n1,2\n,5\n", true},  // without targets, for predictions
                         {"test.csv", "a,b,y,c\n1,2,3,\n4,5,6,\n", false},
                         {"test.csv", "a,b,y\n1,2,3\n4,5,6\n", false}}) {
    CAPTURE(c.name);
    CAPTURE(c.text);
    const Folder folder;
    const std::string path = folder.write("train.csv", full);
    folder.write(c.name, c.text);
    const DataGuess g = guess_data({.path = path});
    CHECK(has(settings_text(g), "missing=mean") == c.fills);
    CHECK(notes(g, c.name + " has fields without a value, which count as the column's mean") ==
          c.fills);
    CHECK(has(settings_text(guess_data({.path = path, .fills_missing = true})), "missing=mean"));
  }
}

TEST_CASE("lines without a target are left out on request, and are no class") {
  const Folder folder;
  const std::string path = folder.write(
      "t.csv", table("a,t\n", 40, [](int i) {
        return std::to_string(i * 7 % 5) + "," + (i == 3 ? "?" : i % 2 == 0 ? "no" : "yes");
      }));
  const DataGuess g = guess_data({.path = path, .drops_missing = true});
  CHECK(settings_text(g) ==
        "path=t.csv, targets=t, class_names=[\"no\", \"yes\"], missing=drop, standardize=true");
  CHECK(g.train.size() == 39);
}

TEST_CASE("lines without a target are left out, and inputs get the mean") {
  const Folder folder;
  const std::string path = folder.write(
      "train.csv", table("a,b,y\n", 40, [](int i) {
        return fmt::format("{}.5,{},{}", i * 7 % 5, i % 2 == 0 ? "" : fmt::format("{}.25", i % 3),
                           i % 10 == 5 ? "NA" : fmt::format("{}.75", i));
      }));
  CHECK(
      has(data_error([&] { guess_data({.path = path}); }),
          "'NA', which stands for a missing value, on this line and on 3 others; leave such lines "
          "out with --missing-targets drop (4 of 40 lines), or all that lack a value with "
          "--missing drop (24), treat"));
  folder.write("val.csv", "a,b,y\n1,,3\n1,2,\n4,5,6\n");
  const DataGuess g = guess_data({.path = path, .drops_missing_targets = true});
  CHECK(settings_text(g) ==
        "path=train.csv, targets=\"y\", missing_targets=drop, missing=mean, standardize=true");
  CHECK(g.train.size() == 36);
  CHECK(notes(g, "4 lines with missing values left out"));
  CHECK(guess_data({.path = path, .drops_missing = true}).train.size() == 16);
}

TEST_CASE("names of columns that are repeated between samples are named") {
  const std::string part =
      table("a,y\n", 8, [](int i) { return fmt::format("{}.5,{}", i, i % 2); });
  CHECK(has(why_not(part + part),
            "t.csv:10:1: this line repeats the column names, which happens when files are joined; "
            "delete it"));
}

TEST_CASE("a class that is called None is taken as one on request, and two numbers are classes") {
  const Folder folder;
  const std::string path = folder.write(
      "t.csv", table("a,sleep\n", 12, [](int i) {
        return fmt::format("{}.5,{}", i % 5, i % 3 == 0 ? "None" : i % 3 == 1 ? "Apnea" : "NA");
      }));
  CHECK(has(data_error([&] { guess_data({.path = path}); }),
            "the target column 'sleep' has 'None', which stands for a missing value, on this line "
            "and on 7 others; leave such lines out with --missing-targets drop, treat this text as "
            "a class "
            "with "
            "--missing class, or choose another column with --target"));
  const DataGuess g = guess_data({.path = path, .missing_is_class = true});
  CHECK(g.class_names == std::vector<std::string>{"Apnea", "NA", "None"});
  CHECK(g.train.size() == 12);
  const std::string empty = folder.write("e.csv", "a,y\n1,x\n2,\n3,x\n4,y\n5,y\n");
  CHECK(has(data_error([&] { guess_data({.path = empty, .missing_is_class = true}); }),
            "the target column 'y' is empty on this line; leave such lines out with "
            "--missing-targets drop, or choose another column"));
  CHECK(has(guess_text("a,y\n1.5,0\n2.5,1\n0.5,0\n7.5,1\n"), "classes=2"));
}

TEST_CASE("lines that are left out on request decide nothing") {
  const auto numbers = [](int i) { return fmt::format("{}.5,{}.25,{}.75", i * 7 % 5, i % 3, i); };
  const std::string all = table("a,b,y\n", 40, numbers);
  const std::string same = "path=t.csv, targets=\"y\", missing=drop, standardize=true";
  const std::string units = "a,b,y\nm,kg,\n" + all.substr(all.find('\n') + 1);
  for (const std::string& text : {all + "Total,60.5,\n", units, all + "x,,1\ny,,2\n"}) {
    CAPTURE(text);
    const Folder folder;
    const std::string path = folder.write("t.csv", text);
    const DataGuess g = guess_data({.path = path, .drops_missing = true});
    CHECK(settings_text(g) == same);
    CHECK(g.train.size() == 40);
    CHECK(notes(g, "with missing values left out"));
  }
  // A column that is not used may lack values.
  const Folder folder;
  const std::string path = folder.write("t.csv", table("a,day,y\n", 40, [](int i) {
                                          return fmt::format("{}.5,{},{}.75", i * 7 % 5,
                                                             i % 4 == 0 ? "" : "2024-01-01", i);
                                        }));
  const DataGuess g = guess_data({.path = path, .drops_missing = true});
  CHECK(g.train.size() == 40);
  CHECK(has(settings_text(g), "exclude=[day]"));
  const std::string none = folder.write("n.csv", "a,b,y\n1,,2\n,2,3\n3,,4\n,5,6\n");
  CHECK(has(data_error([&] { guess_data({.path = none, .drops_missing = true}); }),
            "n.csv has 0 lines with a value in each column that is used; training needs at least "
            "2: leave columns out with --exclude, or fill fields with --missing mean"));
}

TEST_CASE("a target of labels that are numbers has a class for each value") {
  CHECK(has(guess_text(table("a,t\n", 40,
                             [](int i) {
                               return std::to_string(i * 7 % 5) + "," +
                                      (i % 4 < 2    ? ""
                                       : i % 3 == 0 ? ""
                                                    : "") +
                                      std::to_string(i % 2) + (i % 3 == 0 ? ".0" : "");
                             })),
            "targets=t, classes=2"));
}

TEST_CASE("columns of numbers with other texts are refused, and the lines are named") {
  const auto with = [](const char* field) {
    return why_not(table("a,b,t\n", 40, [&](int i) {
      return std::to_string(i * 7 % 11) + "," + (i == 5 ? field : std::to_string(i * 3 % 7)) + "," +
             std::to_string(i) + ".5";
    }));
  };
  for (const char* field : {"inf", "x4", "\"1,5\""})
    CHECK_MESSAGE(has(with(field), "t.csv: column 'b' holds numbers "), with(field));
  CHECK(has(why_not(table("a,t\n", 40,
                          [](int i) {
                            return std::to_string(i % 7) + "," +
                                   (i == 9 ? "oops" : std::to_string(i) + ".5");
                          })),
            "t.csv: the target column 't' holds numbers in 39 of 40 lines, but 'oops' on line 11; "
            "correct these fields, or choose another column with --target"));
}

TEST_CASE("a column of codes, of which most are numbers, is left out and named") {
  const Folder folder;
  const std::string path =
      folder.write("t.csv", table("ticket,b,t\n", 40, [](int i) {
                     return (i % 3 == 0 ? "A/" : "") + std::to_string(i * 37 % 101) + "," +
                            std::to_string(i % 7) + "," + std::to_string(i % 2);
                   }));
  CHECK(notes(guess_csv({.path = path}),
              "column 'ticket' is left out: it holds numbers in 26 of 40 lines, but 'A/0' on line "
              "2, 'A/10' on line 5, 'A/20' on line 8 and 11 other fields"));
}

TEST_CASE("decimal commas are found where another character stands between fields") {
  const auto line = [](int i) {
    return std::to_string(i % 7) + "," + std::to_string(i % 9) + ";" + std::to_string(i) + ",25";
  };
  CHECK(guess_text(table("a;t\n", 30, line)) ==
        "path=t.csv, targets=t, standardize=true, delimiter=\";\", decimal=\",\"");
  CHECK(has(guess_text(table("", 30, line)), "targets=\"1\", standardize=true, delimiter=\";\""));
}

TEST_CASE("percentages are left out and named; other columns by request") {
  const auto line = [](int i) {
    return std::to_string(i * 7 % 5) + ".5," + std::to_string(i % 7) + "%," +
           std::to_string(i % 3) + "," + std::to_string(i) + ".25";
  };
  const Folder folder;
  const std::string path = folder.write("t.csv", table("a,rate,kind,z\n", 40, line));
  const DataGuess g = guess_csv({.path = path});
  CHECK(notes(g, "column 'rate' is left out: it holds percentages: '0%' on line 2"));
  CHECK(notes(g, "write plain numbers ('0%' is read as a number if it is written 0) to use them"));
  CHECK(settings_text(guess_csv({.path = path, .exclude = "a", .categories = "rate,kind"})) ==
        "path=t.csv, targets=z, exclude=[a], categories=[rate, kind]");
  CHECK(has(error_of(Fault::spec, [&] { guess_csv({.path = path, .exclude = "a,z"}); }),
            "--exclude names column 'z', which is a target"));
  CHECK(has(data_error([&] { guess_csv({.path = path, .categories = "b"}); }), "no column 'b'"));
}

TEST_CASE("the decimal mark is that of most columns, or given") {
  const auto line = [](int i) {
    return std::to_string(i * 7 % 5) + ",43;1." + std::to_string(i % 3) + ";" + std::to_string(i);
  };
  const Folder folder;
  const std::string path = folder.write("t.csv", table("wert;v;z\n", 40, line));
  const std::string why = data_error([&] { guess_csv({.path = path}); });
  CHECK_MESSAGE(has(why, "column 'v' holds numbers with"), why);
  CHECK_MESSAGE(has(why,
                    "leave the column out with --exclude, or take its texts as categories with "
                    "--categories; if '.' is the decimal mark of the file, use --decimal '.'"),
                why);
  CHECK(settings_text(guess_csv({.path = path, .categories = "v"})) ==
        "path=t.csv, targets=z, categories=[v], standardize=true, delimiter=\";\", decimal=\",\"");
  CHECK(settings_text(guess_csv({.path = path, .decimal = '.', .exclude = "wert"})) ==
        "path=t.csv, targets=z, exclude=[wert], standardize=true, delimiter=\";\"");
}

TEST_CASE("indices and dates are left out and named") {
  const Folder folder;
  const std::string path =
      folder.write("t.csv", table(",user_id,PassengerId,valid,year,day,t\n", 40, [](int i) {
                     const std::string n = std::to_string(i * 37 % 41);
                     return std::to_string(i) + "," + n + "," + n + "," + n + "," +
                            std::to_string(1900 + 3 * i) + ",2026-01-" +
                            std::to_string(10 + i % 3) + "," + std::to_string(i % 2);
                   }));
  const DataGuess g = guess_csv({.path = path});
  CHECK(has(settings_text(g), "exclude=[\"\", user_id, PassengerId, year, day], "));
  CHECK(notes(g, "column 'user_id' is left out: it is named as an index"));
  CHECK(notes(g, "column 'year' is left out: its whole numbers rise from line to line"));
  CHECK(
      notes(g, "column 'day' is left out: it holds dates, such as '2026-01-10' on line 2; write"));
  // A single input is none.
  CHECK(
      has(guess_text(table("x,t\n", 40,
                           [](int i) { return std::to_string(i) + "," + std::to_string(i % 2); })),
          "targets=t, classes=2, standardize=true"));
}

TEST_CASE("several targets, and columns of one name") {
  const auto line = [](int i) {
    return std::to_string(i * 7 % 5) + "," + std::to_string(i % 2) + "," + std::to_string(i % 3) +
           ".5";
  };
  CHECK(guess_text(table("a,b,c\n", 40, line), "b,c") ==
        "path=t.csv, targets=[b, c], standardize=true");
  CHECK(guess_text(table("a,b,\"b,c\"\n", 40, line), "b,c") ==
        "path=t.csv, targets=\"b,c\", standardize=true");
  CHECK(has(why_not(table("a,b,c\n", 40, line), "b,d"), "has no column 'd'"));
  CHECK(has(
      why_not(table("a,b,c\n", 40, [](int i) { return i % 2 == 0 ? "1,2,x" : "2,3,y"; }), "b,c"),
      "the target column 'c' holds texts, such as 'x' on line 2; several targets must be"));
  CHECK(guess_text(table("b,a,b\n", 40, line)) == "path=t.csv, targets=b.1, standardize=true");
  CHECK(guess_text(table("b,a,b\n", 40, line), "0") ==
        "path=t.csv, targets=\"0\", classes=5, standardize=true");
  CHECK(has(why_not(table("b,a,b\n", 40, line), "b"), "has 2 columns 'b': 0, 2, counted from 0"));
}

TEST_CASE("a target in quotes may have commas in its name") {
  const auto line = [](int i) {
    return std::to_string(i * 7 % 5) + "," + std::to_string(i % 2) + "," + std::to_string(i % 3) +
           ".5";
  };
  const std::string csv = table("a,\"price, net\",\"so-called \"\"c\"\"\"\n", 40, line);
  CHECK(guess_text(csv, "price, net") ==
        "path=t.csv, targets=\"price, net\", classes=2, standardize=true");
  CHECK(guess_text(csv, "\"price, net\"") == guess_text(csv, "price, net"));
  CHECK(guess_text(csv, "\"price, net\",a").starts_with("path=t.csv, targets=[\"price, net\", a]"));
  CHECK(has(guess_text(csv, " \"price, net\" , \"so-called \"\"c\"\"\""), "so-called"));
  const auto misspelt = [&](const std::string& target) {
    return error_of(Fault::spec, [&] { guess_text(csv, target); });
  };
  CHECK(has(misspelt("\"price, net"), "write a name with a comma in quotes"));
  CHECK(has(misspelt("\"price, net\"x"), "write a name with a comma in quotes"));
}

TEST_CASE("several targets of True and False, or yes and no, are labels") {
  const auto line = [](int i) {
    return std::to_string(i * 7 % 5) + "," + (i % 2 == 0 ? "True" : "False") + "," +
           (i % 3 == 0 ? "no" : "yes") + "," + std::to_string(i % 2);
  };
  const Folder folder;
  const std::string csv = table("a,tea,mate,milk\n", 40, line);
  const DataGuess g = guess_data({.path = folder.write("t.csv", csv), .target = "tea,mate,milk"});
  CHECK(settings_text(g) == "path=t.csv, targets=[tea, mate, milk], standardize=true");
  CHECK(values_of<float>(g.train.targets)[0] == 1);
  CHECK(values_of<float>(g.train.targets)[1] == 0);
  CHECK(has(why_not(csv, "a,tea"), "holds texts, such as 'True' on line 2"));
}

TEST_CASE("lines above a table are named as the cause of errors") {
  const std::string rows = "a,b,y\n1,2,0\n3,4,1\n5,6,0\n";
  CHECK(has(why_not("# logger v2\n# SI\n" + rows),
            "the first line has no , ; tab or | between two fields, but line 3 has; delete the "
            "lines above it if they are comments"));
  CHECK(
      has(why_not("Report\n\n" + rows), "but line 3 has; delete the lines above it if they are a"));
  CHECK(has(why_not("Quarterly report,,\n,,\n" + rows),
            "t.csv:1:1: this line looks like a title, 'Quarterly report', since its other fields"));
  CHECK(has(why_not(rows + "# end\n"),
            "t.csv:5:1: 1 field, where the first line has 3; comments are not read: delete the "
            "lines that begin with #"));
  // Names that begin with #, and a column without a name.
  CHECK(has(guess_text(table(
                "#id,b,y\n", 40,
                [](int i) { return "x," + std::to_string(i % 7) + ",2.5" + std::to_string(i); })),
            "targets=\"y\""));
}

TEST_CASE("Excel's line sep=; names the delimiter and is no sample") {
  const auto line = [](int i) { return std::to_string(i % 7) + ";" + std::to_string(i % 2); };
  CHECK(guess_text(table("sep=;\na;t\n", 40, line)) ==
        "path=t.csv, targets=t, classes=2, standardize=true, delimiter=\";\"");
}

TEST_CASE("a header that looks like numbers is found, forced or denied, and doubts are told") {
  const auto whole = [](int i) {
    return std::to_string(i * 7 % 5) + "," + std::to_string(i % 3) + "," + std::to_string(i % 2);
  };
  const auto line = [](int i) {
    return std::to_string(i * 7 % 5) + ".5," + std::to_string(i % 3) + ".25," +
           std::to_string(i % 2);
  };
  CHECK(guess_text(table("0,1,target\n", 40, line)) ==
        "path=t.csv, targets=target, classes=2, standardize=true");
  const Folder folder;
  const std::string path = folder.write("t.csv", table("1,3,x\n", 40, line));
  CHECK(notes(guess_csv({.path = path}), "warning: line 1 of " + path + " is taken for"));
  CHECK(notes(guess_csv({.path = path}), "(--header no of init)"));
  CHECK(has(why_not(table("2,1,target\n", 40, whole)),
            "but 'target' on line 1; if this line names the columns, use --header yes; otherwise "
            "correct these fields"));
  CHECK_FALSE(has(why_not(table("2,1,1\n2,1,target\n", 40, whole)), "--header"));
  const DataGuess forced = guess_csv({.path = path, .header = CsvFormat::HeaderLine::yes});
  CHECK(settings_text(forced) ==
        "path=t.csv, targets=x, classes=2, standardize=true, header=\"yes\"");
}

TEST_CASE("line breaks in names and texts are escaped, and settings read back equal") {
  const auto line = [](int i) {
    return std::to_string(i * 7 % 5) + ".5,\"text\n" + std::to_string(i) + "\"," +
           (i % 2 == 0 ? "\"a\nb\"" : "\"c\td\"");
  };
  const Folder folder;
  const std::string path = folder.write("t.csv", table("x,\"no\nte\",\"ta\nrget\"\n", 40, line));
  const DataGuess g = guess_data({.path = path});
  CHECK(settings_text(g) ==
        "path=t.csv, targets=\"ta\\u000arget\", class_names=[\"a\\u000ab\", \"c\\u0009d\"], "
        "exclude=[\"no\\u000ate\"], standardize=true");
  CHECK(g.train.class_names == std::vector<std::string>{"a\nb", "c\td"});
  CHECK(notes(g, "column 'no\\nte' is left out: its 40 different texts, such as 'text\\n0'"));
  // Other control characters cannot be in a spec: names become numbers, and classes are found.
  const auto bell = [](int i) {
    return std::to_string(i * 7 % 5) + ".5,text " + std::to_string(i) +
           (i % 2 == 0 ? ",a\a" : ",b");
  };
  CHECK(
      settings_text(guess_data({.path = folder.write("b.csv", table("x,n\a,t\a\n", 40, bell))})) ==
      "path=b.csv, targets=\"2\", classes=auto, exclude=[\"1\"], standardize=true");
}

TEST_CASE("train.csv has test.csv beside it, if that has the target") {
  const Folder folder;
  const auto lines = [](const std::string& header) {
    return table(header, 30,
                 [](int i) { return std::to_string(i % 7) + ".5," + std::to_string(i % 2); });
  };
  const std::string train = folder.write("my_train.csv", lines("a,t\n"));
  folder.write("my_test.csv", lines("a,t\n"));
  DataGuess g = guess_data({.path = train});
  CHECK(has(settings_text(g), "path=my_train.csv, test_path=my_test.csv"));
  CHECK(g.test.has_value());
  folder.write("my_test.csv", lines("a,b\n"));
  g = guess_csv({.path = train});
  CHECK(!has(settings_text(g), "test_path"));
  CHECK(notes(g, "has no column 't', so it is not used as a test set"));
  folder.write("my_test.csv", "a;t\n1.5;0\n2.5;1\n");
  g = guess_csv({.path = train});
  CHECK(!has(settings_text(g), "test_path"));
  CHECK(notes(g,
              "my_test.csv: ';' seems to stand between its fields, where the training file has "
              "',', so it is not used as a test set; save it with ','"));
}

TEST_CASE("train.csv has val.csv beside it as a validation set, or says why not") {
  const Folder folder;
  const auto lines = [](const std::string& header) {
    return table(header, 30,
                 [](int i) { return std::to_string(i % 7) + ".5," + std::to_string(i % 2); });
  };
  const std::string train = folder.write("train.csv", lines("a,t\n"));
  CHECK(guess_csv({.path = train}).validation.empty());
  for (const char* name : {"validation.csv", "valid.csv", "val.csv"}) {
    const std::string file = folder.write(name, lines("a,t\n"));
    CHECK(guess_csv({.path = train}).validation.at(0).value == file);
  }
  folder.write("val.csv", lines("a,b\n"));
  const DataGuess g = guess_csv({.path = train});
  CHECK(g.validation.at(0).value == folder.file("valid.csv"));
  CHECK(notes(g, "val.csv has no column 't', so it is not used as a validation set"));
}

TEST_CASE("means and deviations are those of each column, and of real targets") {
  const Folder folder;
  folder.write("x.npy", npy<float>("<f4", "(4, 3)", {1, 5, 0, 3, 5, 1000, 1, 5, 0, 3, 5, 1000}));
  folder.write("y.npy", npy<float>("<f4", "(4,)", {100, 300, 100, 300}));
  const DataGuess g = guess_data({.path = folder.path()});
  CHECK(settings_text(g) == "inputs=x.npy, targets=y.npy, standardize=true");
  CHECK(g.mean.empty());
  CHECK(g.train.channels == std::vector<ChannelScaling>{{2, 1}, {5, 1}, {500, 500}});
  CHECK(g.target_mean == std::vector<double>{200});
  CHECK(g.target_std == std::vector<double>{100});
}

TEST_CASE("arrays are found by their names") {
  const Folder folder;
  const auto write = [&](const std::string& name, int n) {
    folder.write(name, npy("<f4", fmt::format("({}, 2)", n),
                           std::vector<float>(static_cast<size_t>(2 * n), 0.5F)));
  };
  write("X_train.npy", 6);
  write("y_train.npy", 6);
  CHECK(settings_text(guess_arrays(folder.path())) ==
        "inputs=X_train.npy, targets=y_train.npy, standardize=true");
  write("X_test.npy", 3);
  write("y_test.npy", 3);
  const DataGuess g = guess_data({.path = folder.path()});
  CHECK(has(settings_text(g), "test_inputs=X_test.npy, test_targets=y_test.npy"));
  CHECK(g.train.size() == 6);
  CHECK(g.test->size() == 3);
  CHECK(g.train.channels == std::vector<ChannelScaling>{{0.5, 1}, {0.5, 1}});
  CHECK(g.validation.empty());
  write("x_validation.npy", 3);
  CHECK(notes(guess_arrays(folder.path()), "not used: x_validation.npy; a set is a pair"));
  write("Y_validation.npy", 3);
  const DataGuess validated = guess_data({.path = folder.path()});
  CHECK(validated.validation.at(0).value == folder.file("x_validation.npy"));
  CHECK(validated.validation.at(1).value == folder.file("Y_validation.npy"));
  CHECK(settings_text(validated) == settings_text(g));
  CHECK(!notes(validated, "not used"));
  const Folder other;
  other.write("a.npy", "");
  CHECK(has(data_error([&] { guess_arrays(other.path()); }), "name them x.npy and y.npy"));
}

TEST_CASE("IDX files by their names, plain or gzip'ed") {
  const Folder folder;
  folder.write("train-images-idx3-ubyte.gz", gzip(idx_bytes({4, 9, 9})));
  folder.write("train-labels-idx1-ubyte", idx_header(8, {4}) + std::string("\0\1\2\0", 4));
  folder.write("t10k-images-idx3-ubyte", idx_bytes({1, 9, 9}));
  folder.write("t10k-labels-idx1-ubyte", idx_header(8, {1}) + std::string("\1", 1));
  const DataGuess g = guess_data({.path = folder.path()});
  CHECK(g.type == "idx");
  CHECK(g.train.classes == 3);
  CHECK(g.train.inputs.sample() == Shape{1, 9, 9});
  CHECK(g.test->size() == 1);
}

TEST_CASE("masks of black and white pixels are refused with their conversion") {
  const Folder folder;
  folder.write("x.npy", npy("|u1", "(2, 1, 2, 2)", std::vector<uint8_t>(8, 7)));
  folder.write("y.npy", npy("|u1", "(2, 2, 2)", std::vector<uint8_t>{0, 255, 0, 0, 255, 0, 0, 0}));
  CHECK(has(data_error([&] { guess_data({.path = folder.path()}); }),
            "y.npy holds only 0 and 255, as masks of black and white pixels do, but classes are "
            "numbered 0 and 1; convert it: numpy.save("));
  folder.write("y.npy", npy("|u1", "(2, 2, 2)", std::vector<uint8_t>{0, 255, 0, 1, 255, 0, 0, 0}));
  CHECK(guess_data({.path = folder.path()}).ignore_index == 255);
}

TEST_CASE("texts, names of data sets, and what is neither") {
  const Folder folder;
  CHECK(has(data_error([&] { guess_data({.path = folder.write("t.csv.gz", "\x1f\x8b")}); }),
            "t.csv.gz is compressed with gzip; unpack it with gunzip"));
  const auto guess = [](const std::string& path, const std::string& target = "") {
    return guess_data({.path = path, .target = target});
  };
  std::string text;
  for (int i = 0; i < 200; ++i) text += "to be or not to be\n";
  const DataGuess book = guess(folder.write("book.txt", text));
  CHECK(settings_text(book) == "path=book.txt, sequence_length=64, test_share=0.1");
  CHECK(book.train.tokens == 8);
  CHECK(book.has_test());
  CHECK(guess("synthetic-images").type == "synthetic_images");
  CHECK(has(data_error([&] { guess("fashion_mnst"); }), "did you mean 'fashion_mnist'?"));
  CHECK(has(data_error([&] { guess(folder.write("x.npz", "PK")); }), "numpy.save"));
  CHECK(has(data_error([&] { guess(folder.write("x.bin", std::string("\0\1", 2))); }),
            "is not a CSV file, a text file or an array"));
  CHECK(has(data_error([&] { guess(folder.write("short.txt", "too short")); }), "9 characters"));
  CHECK(has(data_error([&] { guess(folder.path()); }), "holds neither folders of"));
  folder.write("pictures/a/1.gif", "GIF89a");
  folder.write("pictures/b/2.GIF", "GIF89a");
  folder.write("pictures/b/3.heic", "");
  CHECK(has(data_error([&] { guess(folder.file("pictures")); }),
            ", but files of types that are not read: 2 .gif, 1 .heic. Convert them"));
  // Not the names of the files are at fault.
  folder.write("arrays/data.npz", "PK");
  folder.write("arrays/labels.npy", "");
  CHECK(has(data_error([&] { guess(folder.file("arrays")); }),
            "arrays/data.npz is an archive of arrays, which dptrain does not read"));
  CHECK(has(error_of(Fault::spec, [&] { guess("csv"); }), "dptrain init FILE"));
  CHECK(has(error_of(Fault::spec, [&] { guess("synthetic_images", "t"); }),
            "--target, --header, --missing, --decimal, --exclude and --categories are for tables"));
}

TEST_CASE("YAML scalars are quoted where they would mean something else") {
  CHECK(yaml_scalar("data/a-1.csv") == "data/a-1.csv");
  CHECK(yaml_scalar("../x") == "../x");
  for (const char* text : {"", "1", "1e3", "true", "No", "null", "a b", "a: b", "-x", "#", ".inf"})
    CHECK(yaml_scalar(text) == "\"" + std::string(text) + "\"");
}

}  // namespace
}  // namespace dpt
