// Models that can be had from a hub, and a download under way, as plain values. app/window/models/catalogue
// writes them between frames.
//
// Texts from the hub are valid UTF-8 and somebody else's: data, shown as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace octavo::ui {

// Whether a model runs on this machine.
enum class CatalogueFit {
  kUnknown,
  kFits,
  kSlow,
  kNever,        // its memory is not here
  kUnsupported,  // no machine runs it with this program
};

// A repository of the hub.
struct CatalogueRow {
  std::string repository = {};  // "org/name"
  std::string name = {};        // shown
  std::string file = {};        // which of its files: a type such as "Q4_K_M"; empty: the usual one
  std::string note = {};        // "Q4_K_M · apache-2.0"
  std::int64_t bytes = 0;       // 0: not known yet
  CatalogueFit fit = CatalogueFit::kUnknown;
  std::string here = {};  // the path of it where it is on this machine already
};

// One model of a repository.
struct CatalogueFile {
  std::string path = {};
  std::string type = {};
  std::int64_t bytes = 0;
  CatalogueFit fit = CatalogueFit::kUnknown;
  std::string sentence = {};  // "Needs 5.1 GiB of memory"
  bool is_checked = false;    // by its header; else by its size alone
  bool is_checking = false;
  std::string here = {};
};

// The repository that is looked at.
struct CatalogueRepository {
  std::string name = {};  // empty: none
  std::string licence = {};
  bool is_gated = false;
  bool is_reading = false;
  std::string problem = {};  // one sentence
  std::vector<CatalogueFile> files = {};
  std::string chosen = {};  // a file's path
};

enum class DownloadPhase {
  kNone,
  kAsking,
  kWaiting,
  kReceiving,
  kRetrying,
  kVerifying,
  kPaused,
  kFailed,
  kDone
};

struct DownloadState {
  DownloadPhase phase = DownloadPhase::kNone;
  std::string repository = {}, file = {};  // as asked for
  std::string name = {};                   // shown
  std::int64_t received = 0, total = 0;
  double bytes_per_s = 0;  // 0: not known
  std::optional<double> seconds_left = {};
  std::string sentence = {};  // why it failed, or what goes wrong just now
  std::string path = {};      // once it is done
};
inline bool is_running(DownloadPhase phase) {
  return phase != DownloadPhase::kNone && phase != DownloadPhase::kPaused &&
         phase != DownloadPhase::kFailed && phase != DownloadPhase::kDone;
}

struct CatalogueState {
  bool open = false;
  std::string host = {};       // what searching and downloading contact
  bool is_offline = false;     // HF_HUB_OFFLINE
  std::string list_date = {};  // of the recommended ones
  std::vector<CatalogueRow> recommended = {};
  std::optional<std::string> query;  // that `found` is for; nullopt: nothing was searched for
  bool is_searching = false;
  std::string problem = {};  // of the search, one sentence
  std::vector<CatalogueRow> found = {};
  CatalogueRepository repository;
  DownloadState download;
  // For the first start: one that answers at once, and the best for this machine; nullopt: none fits.
  CatalogueRow first;
  std::optional<CatalogueRow> better;
};

}  // namespace octavo::ui
