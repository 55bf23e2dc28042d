#include "spec/pytorch_words.h"

#include <cctype>

namespace dpt {
namespace {

// Words are in the form of plain_name().
struct Advice {
  std::string_view word, text;
};
constexpr std::string_view kInferred = "the input size is inferred, so delete this key";
constexpr std::string_view kDropout2d =
    "use dropout2d, which sets whole channels of [N, C, ...] to zero, with 1 to 3 more dimensions";
constexpr std::string_view kShards =
    "weights cannot be sharded; `ddp: {shard: optimizer}` shards optimizer states";
constexpr std::string_view kPrecision =
    "set `precision: bf16` or `precision: fp16`; fp16 scales the loss as GradScaler does";
constexpr std::string_view kRecurrent =
    "recurrent layers are not available; use conv1d or multihead_attention over the sequence, or "
    "add the layer to the program that `dptrain export SPEC --to torch` writes";
constexpr std::string_view kFocal =
    "use focal_loss for one class of several, or sigmoid_focal_loss for labels of 0 and 1";
constexpr std::string_view kDice =
    "use dice_loss for one class of several, or sigmoid_dice_loss for masks of 0 and 1";
constexpr std::string_view kLoop =
    "dptrain has the training loop; `dptrain export SPEC --to torch` writes it as a program";
constexpr std::string_view kMetrics =
    "list metrics in `evaluate: {metrics: [accuracy, precision, recall, f1, auc]}`; test.f1.LABEL "
    "is that of one class or label";
constexpr std::string_view kPrefetched =
    "batches are prefetched by threads of dptrain's own, so delete this key";
constexpr std::string_view kAverageWeights =
    "set `ema: 0.999`, an exponential average of the weights, or `asgd: {average: true}`";
constexpr std::string_view kLayerWise =
    "optimizers that adapt the rate of each layer are not available; use adam_w";
constexpr std::string_view kImplementation =
    "it chooses between implementations of PyTorch, and dptrain has one, so delete this key";
constexpr std::string_view kPermute =
    "use permute, which lists all dimensions but the batch in their new order";
constexpr std::string_view kZeroPad = "use pad, whose new elements are 0 by default";
constexpr std::string_view kTied =
    "two layers cannot share a parameter; the exported program can be changed";
constexpr std::string_view kMasks =
    "multihead_attention has `causal: true` and no other masks; the exported program can be "
    "changed";
constexpr std::string_view kBlock =
    "write it with residual, layer_norm and multihead_attention, as in "
    "configs/gpt_shakespeare.yaml";
constexpr std::string_view kNoLayer =
    "dptrain does not have this layer; add it to the program that `dptrain export SPEC --to torch` "
    "writes";
constexpr std::string_view kNoSchedule =
    "`dptrain explain schedule` lists the schedules; for another one, edit the exported program";
constexpr std::string_view kClipping = "set `clip_grad_norm: 1` or `clip_grad_value: 1`";
constexpr std::string_view kWeightFiles =
    "`initial_weights: FILE` loads weights; `dptrain export RUN -o FILE.pt` writes them for "
    "PyTorch";
constexpr std::string_view kWarps =
    "images are not rotated or warped here; write changed copies of the images once, or add the "
    "transform to the program that `dptrain export SPEC --to torch` writes";
constexpr std::string_view kClassWeights =
    "set `weight` of the loss, a number for each class, `pos_weight` for labels, or "
    "`sampler: weighted` of `data`, which draws all classes equally often";
constexpr std::string_view kSampleWeights =
    "sample weights are not supported: repeat each line of the table in proportion to its weight, "
    "or "
    "set class weights with `weight` of the loss";
constexpr std::string_view kExposure =
    "there is no offset of the output: divide the targets by the exposure, or take its logarithm "
    "as an input";
constexpr std::string_view kRandomSplit =
    "write `data: {validation: 0.2}`; the samples are those of random_split. Keras takes the last "
    "ones instead: see \"Splits of your own\" in docs/data.md";
constexpr std::string_view kOwnSplit =
    "`validation: 0.2` draws at random; for another split write train.csv and val.csv yourself, "
    "and "
    "`data: {validation: {csv: {path: val.csv}}}`: see \"Splits of your own\" in docs/data.md";
constexpr std::string_view kFolds =
    "train once for each fold, on files that you split: `dptrain SPEC "
    "data.dataset.csv.path=train1.csv data.validation.csv.path=val1.csv`; see \"Splits of your "
    "own\" "
    "in docs/data.md";
constexpr Advice kAdvice[] = {
    {"classweight", kClassWeights},
    {"classweights", kClassWeights},
    {"scaleposweight", kClassWeights},
    {"sampleweight", kSampleWeights},
    {"sampleweights", kSampleWeights},
    {"exposure", kExposure},
    {"offset", kExposure},
    {"randomresizedcrop",
     "write `resize: 256` in the data set image_folder, and the transform `random_crop: {size: "
     "224}`; its scale and ratio are not available"},
    {"resize", "write `resize: 256` in the data set image_folder or image_table"},
    {"grayscale",
     "save the images as gray: image_folder reads them as three equal channels, and the data set "
     "npy as arrays [N, 1, H, W]"},
    {"randomgrayscale", "use color_jitter, whose `saturation` makes colors paler"},
    {"randomrotation", kWarps},
    {"randomaffine", kWarps},
    {"randomperspective", kWarps},
    {"multiclassf1score", kMetrics},
    {"multilabelf1score", kMetrics},
    {"f1score", kMetrics},
    {"binaryauroc", kMetrics},
    {"multilabelauroc", kMetrics},
    {"auroc", kMetrics},
    {"rocaucscore", kMetrics},
    {"torchmetrics", kMetrics},
    {"lionpytorch", "use `optimizer: lion`"},
    {"transformerencoder", "write the layers of a block in `blocks`, and `repeat: N`"},
    {"centercrop", "write `crop: 224` in the data set image_folder or image_table"},
    {"lambdalr", kNoSchedule},
    {"multiplicativelr", kNoSchedule},
    {"chainedscheduler", kNoSchedule},
    {"bilinear", kNoLayer},
    {"embeddingbag", kNoLayer},
    {"fold", kNoLayer},
    {"unfold", kNoLayer},
    {"maxunpool1d", kNoLayer},
    {"maxunpool2d", kNoLayer},
    {"maxunpool3d", kNoLayer},
    {"softmin", kNoLayer},
    {"rrelu", "use leaky_relu or prelu; random slopes are not available"},
    {"softmax2d", "use softmax, which takes dimension 1 by default"},
    {"randaugment", kWarps},
    {"autoaugment", kWarps},
    {"trivialaugmentwide", kWarps},
    {"concatdataset", "data sets cannot be joined; write all samples to one file"},
    {"statedict", kWeightFiles},
    {"loadstatedict", kWeightFiles},
    {"load", kWeightFiles},
    {"save", kWeightFiles},
    {"tensordataset", "save the arrays as .npy files and use the data set npy"},
    {"imagefolder", "use the data set image_folder"},
    {"flowfromdataframe", "use the data set image_table"},
    {"traintestsplit", kRandomSplit},
    {"validationsplit", kRandomSplit},
    {"shufflesplit", kRandomSplit},
    {"stratify", kOwnSplit},
    {"stratified", kOwnSplit},
    {"stratifiedsplit", kOwnSplit},
    {"stratifiedshufflesplit", kOwnSplit},
    {"groupshufflesplit", kOwnSplit},
    {"timeseriessplit", kOwnSplit},
    {"predefinedsplit", kOwnSplit},
    {"kfold", kFolds},
    {"stratifiedkfold", kFolds},
    {"groupkfold", kFolds},
    {"stratifiedgroupkfold", kFolds},
    {"crossvalscore", kFolds},
    {"crossvalidation", kFolds},
    {"scaleddotproductattention", "use multihead_attention, which has the projections, too"},
    {"view", "use reshape or flatten"},
    {"squeeze", "use reshape or flatten"},
    {"unsqueeze", "use reshape"},
    {"unflatten", "use reshape"},
    {"transpose", kPermute},
    {"swapaxes", kPermute},
    {"movedim", kPermute},
    {"zeropad1d", kZeroPad},
    {"zeropad2d", kZeroPad},
    {"zeropad3d", kZeroPad},
    {"upsamplingbilinear2d",
     "use upsample with `mode: bilinear, align_corners: true`, which this class sets"},
    {"upsamplingnearest2d", "use upsample with `mode: nearest`"},
    {"interpolate", "use upsample with `mode: bilinear` or `mode: nearest`"},
    {"collatefn", "samples have one shape; texts become windows by `sequence_length`"},
    {"autoencoder", "write `target_transforms: [input]`; see configs/fmnist_autoencoder.yaml"},
    {"tieweights", kTied},
    {"weighttying", kTied},
    {"dropout1d", kDropout2d},
    {"dropout3d", kDropout2d},
    {"infeatures", kInferred},
    {"inchannels", kInferred},
    {"numfeatures", kInferred},
    {"inputsize", kInferred},
    {"fsdp", kShards},
    {"fullyshardeddataparallel", kShards},
    {"zeroredundancyoptimizer", kShards},
    {"deepspeed", kShards},
    {"amp", kPrecision},
    {"gradscaler", kPrecision},
    {"autocast", kPrecision},
    {"forward", "layers of `model` are computed in order; `name` and `from` join others"},
    {"transformer", kBlock},
    {"transformerencoderlayer", kBlock},
    {"transformerdecoder", kBlock},
    {"transformerdecoderlayer", kBlock},
    {"lstm", kRecurrent},
    {"gru", kRecurrent},
    {"rnn", kRecurrent},
    {"swa", kAverageWeights},
    {"swalr", kAverageWeights},
    {"lamb", kLayerWise},
    {"lars", kLayerWise},
    {"foreach", kImplementation},
    {"fused", kImplementation},
    {"capturable", kImplementation},
    {"differentiable", kImplementation},
    {"averagedmodel", "set `ema: 0.999`, an exponential average of the weights"},
    {"hinge",
     "use multi_margin_loss for several classes, or soft_margin_loss for targets 1 and -1"},
    {"hingeloss",
     "use multi_margin_loss for several classes, or soft_margin_loss for targets 1 and -1"},
    {"focal", kFocal},
    {"focalloss", kFocal},
    {"dice", kDice},
    {"diceloss", kDice},
    {"dataloader", "its arguments are keys of `data`: batch_size, shuffle, sampler, drop_last"},
    {"numworkers", kPrefetched},
    {"prefetchfactor", kPrefetched},
    {"persistentworkers", kPrefetched},
    {"pinmemory", "GPU input is copied from pinned memory in any case, so delete this key"},
    {"distributedsampler", "`parallel: ddp` uses PyTorch's order of samples for each rank"},
    {"nosync", "set `accumulate: N`, micro-batches per step"},
    {"gradientaccumulation", "set `accumulate: N`, micro-batches per step"},
    {"gradientaccumulationsteps", "set `accumulate: N`, micro-batches per step"},
    {"accumulategradbatches", "set `accumulate: N`, micro-batches per step"},
    {"maxepochs", "write `epochs: 10`"},
    {"numepochs", "write `epochs: 10`"},
    {"maxsteps", "write `steps: 1000`"},
    {"maxgradnorm", kClipping},
    {"gradclip", kClipping},
    {"clipgradients", kClipping},
    {"batchfirst", "sequences are always [N, L, E], so delete this key"},
    {"embeddim", kInferred},
    {"inplace", "memory is planned for the whole graph, so delete this key"},
    {"findunusedparameters", "every parameter of a spec is used, so delete this key"},
    {"sequential",
     "`model` is a sequential list of layers; to repeat a list of layers, name it in `blocks`"},
    {"bf16mixed", kPrecision},
    {"16mixed", kPrecision},
    {"gradientclipval", kClipping},
    {"criterion", "write `loss: cross_entropy` or another loss"},
    {"manualseed", "set `seed: 0`"},
    {"worldsize", "set `devices: 2`, or start the ranks with torchrun, srun or mpirun"},
    {"lbfgs", "optimizers that compute a loss several times for a step are not available"},
    {"contrastiveloss", "use cosine_embedding_loss or triplet_margin_loss"},
    {"attnmask", kMasks},
    {"keypaddingmask", kMasks},
    {"gradientcheckpointing", "set `checkpoint: true` beside layers of `model`"},
    {"compile",
     "dptrain plans and fuses every graph before the first step; there is nothing to set"},
    {"cudnnbenchmark", "there is nothing to set: dptrain takes deterministic algorithms only"},
    {"earlystopping", "set `early_stop: 5`, evaluations without improvement"},
    {"modelcheckpoint", "set `save: {best: METRIC}`; the best weights are in best.safetensors"},
    {"export", "run `dptrain export RUN -o FILE.onnx`"},
    {"summarywriter", "set `log: {tensorboard: true}`"},
    {"wandb", "runs write metrics.jsonl, and with `log: {tensorboard: true}` event files"},
    {"zerograd", kLoop},
    {"backward", kLoop},
    {"lightning", kLoop},
    {"trainer", kLoop}};

}  // namespace

std::string plain_name(std::string_view word) {
  for (std::string_view package : {"torch.", "nn.", "optim.", "lr_scheduler.", "functional.", "F.",
                                   "torchvision.", "transforms.", "v2.", "T."})
    if (word.starts_with(package)) word.remove_prefix(package.size());
  std::string out;
  for (unsigned char c : word.substr(0, word.find('(')))
    if (c != '_' && c != '-' && c != ' ') out += static_cast<char>(std::tolower(c));
  // Sizes are inferred for every layer: LazyLinear is linear.
  constexpr std::string_view kLazy = "lazy";
  return out.starts_with(kLazy) ? out.substr(kLazy.size()) : out;
}

std::string_view pytorch_advice(std::string_view word) {
  const std::string bare = plain_name(word);
  for (const Advice& a : kAdvice)
    if (bare == a.word) return a.text;
  return {};
}

}  // namespace dpt
