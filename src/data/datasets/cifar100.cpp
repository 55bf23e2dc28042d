#include <iterator>

#include "data/cifar_files.h"

namespace dpt::datasets {
namespace {

// Krizhevsky 2009: 50000 + 10000 photographs, each with one of 100 fine and of 20 coarse labels.
struct Cifar100 {
  static constexpr Usage kUsage{"torchvision.datasets.CIFAR100",
                                "dataset: cifar100\n"
                                "dataset: {cifar100: {path: ~/data/cifar100, labels: coarse}}"};

  std::string path;
  std::string labels = "fine";
  static KeyTable<Cifar100> keys() {
    return KeyTable<Cifar100>()
        .path("path", &Cifar100::path,
              "folder of the files or of their archive; none: searched in $DPTRAIN_DATA, datasets/ "
              "and the user's cache")
        .choice("labels", &Cifar100::labels, {"fine", "coarse"},
                "the 100 fine classes or the 20 coarse ones")
        .shared();
  }
};

CifarFormat format(const Cifar100& settings) {
  const bool fine = settings.labels == "fine";
  return {.name = "cifar100",
          .archive = "cifar-100-binary.tar",
          .folder = "cifar-100-binary",
          .train = {"train.bin"},
          .test = {"test.bin"},
          .labels = 2,
          .label = fine ? size_t{1} : size_t{0},
          .classes = fine ? 100 : 20};
}

// In the order of fine_label_names.txt and coarse_label_names.txt of the archive.
constexpr std::string_view kFine[] = {
    "apple",       "aquarium_fish", "baby",      "bear",       "beaver",       "bed",
    "bee",         "beetle",        "bicycle",   "bottle",     "bowl",         "boy",
    "bridge",      "bus",           "butterfly", "camel",      "can",          "castle",
    "caterpillar", "cattle",        "chair",     "chimpanzee", "clock",        "cloud",
    "cockroach",   "couch",         "crab",      "crocodile",  "cup",          "dinosaur",
    "dolphin",     "elephant",      "flatfish",  "forest",     "fox",          "girl",
    "hamster",     "house",         "kangaroo",  "keyboard",   "lamp",         "lawn_mower",
    "leopard",     "lion",          "lizard",    "lobster",    "man",          "maple_tree",
    "motorcycle",  "mountain",      "mouse",     "mushroom",   "oak_tree",     "orange",
    "orchid",      "otter",         "palm_tree", "pear",       "pickup_truck", "pine_tree",
    "plain",       "plate",         "poppy",     "porcupine",  "possum",       "rabbit",
    "raccoon",     "ray",           "road",      "rocket",     "rose",         "sea",
    "seal",        "shark",         "shrew",     "skunk",      "skyscraper",   "snail",
    "snake",       "spider",        "squirrel",  "streetcar",  "sunflower",    "sweet_pepper",
    "table",       "tank",          "telephone", "television", "tiger",        "tractor",
    "train",       "trout",         "tulip",     "turtle",     "wardrobe",     "whale",
    "willow_tree", "wolf",          "woman",     "worm"};
constexpr std::string_view kCoarse[] = {"aquatic_mammals",
                                        "fish",
                                        "flowers",
                                        "food_containers",
                                        "fruit_and_vegetables",
                                        "household_electrical_devices",
                                        "household_furniture",
                                        "insects",
                                        "large_carnivores",
                                        "large_man-made_outdoor_things",
                                        "large_natural_outdoor_scenes",
                                        "large_omnivores_and_herbivores",
                                        "medium_mammals",
                                        "non-insect_invertebrates",
                                        "people",
                                        "reptiles",
                                        "small_mammals",
                                        "trees",
                                        "vehicles_1",
                                        "vehicles_2"};

Dataset load(const std::any& settings, const LoadQuery& query) {
  const auto& c = std::any_cast<const Cifar100&>(settings);
  Dataset d = load_cifar(format(c), c.path, query);
  if (c.labels == "fine")
    d.class_names.assign(std::begin(kFine), std::end(kFine));
  else
    d.class_names.assign(std::begin(kCoarse), std::end(kCoarse));
  return d;
}

std::string torch(const std::any& settings, const LoadQuery& query) {
  const auto& c = std::any_cast<const Cifar100&>(settings);
  return cifar_torch(format(c), c.path, query);
}

// 20 classes suit models for either kind of labels.
std::string stand_in(const std::any&) {
  return "{synthetic_images: {samples: 50000, shape: [3, 32, 32], classes: 20}}";
}

}  // namespace

DatasetType cifar100() {
  DatasetType t{registry_entry<Cifar100>(
      "cifar100",
      "CIFAR-100, binary version: 60000 color photographs, 32 x 32, in 100 classes "
      "(Krizhevsky 2009).")};
  t.load = load;
  t.torch = torch;
  t.stand_in = stand_in;
  return t;
}

}  // namespace dpt::datasets
