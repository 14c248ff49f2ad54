// Does what the catalogue asks for, on threads of its own: one asks the hub, one downloads.
//
// Thread: calls from the window's; `wake_up` is called from the others.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "app/hub/hub_client.h"
#include "app/hub/hub_place.h"
#include "app/window/job_thread.h"
#include "app/window/models/catalogue.h"
#include "engine/base/clock.h"

namespace octavo::app {

class CatalogueLink {
 public:
  // The clock must outlive it.
  //   check  looks at a header before it is opened here; empty: nobody does
  CatalogueLink(hub::HubPlace place, const Clock& clock, std::function<std::int64_t()> available_bytes,
                hub::CheckHeader check, std::function<void()> wake_up);
  // Ends what is asked; a download pauses.
  ~CatalogueLink();
  CatalogueLink(const CatalogueLink&) = delete;
  CatalogueLink& operator=(const CatalogueLink&) = delete;

  const hub::HubPlace& place() const { return place_; }

  // Whatever is under way of its kind is given up for it.
  void give(CatalogueJob job);
  std::vector<CatalogueReport> take_reports() { return jobs_.take_outcomes(); }

  // REQUIRES: none is under way
  //   wish  kCancel: what has come of it is removed
  void download(DownloadWanted wanted, hub::DownloadWish wish);
  void wish(hub::DownloadWish wish) { wish_ = wish; }
  // The newest since the last call.
  std::optional<hub::DownloadProgress> take_progress();
  std::vector<DownloadEnded> take_ended() { return downloads_.take_outcomes(); }

 private:
  std::optional<CatalogueReport> perform(CatalogueJob job);
  std::optional<DownloadEnded> perform_download(const DownloadWanted& wanted);
  MachineJudged judge() const;
  RepositoryRead read(hub::HubClient& client, const RepositoryJob& job) const;
  void note(const hub::DownloadProgress& progress);

  const hub::HubPlace place_;
  const Clock& clock_;
  const std::function<std::int64_t()> available_bytes_;
  const hub::CheckHeader check_;
  const std::function<void()> wake_up_;
  std::array<std::atomic<std::uint64_t>, 4> newest_ = {};  // serials, by kind of job
  std::atomic<bool> stopping_ = false;
  std::atomic<hub::DownloadWish> wish_ = hub::DownloadWish::kGoOn;
  std::mutex mutex_;
  std::optional<hub::DownloadProgress> progress_;  // guarded by mutex_
  std::optional<hub::HubRepository> begun_;        // of the downloading thread: what came last
  JobThread<CatalogueJob, CatalogueReport> jobs_;
  JobThread<DownloadWanted, DownloadEnded> downloads_;
};

}  // namespace octavo::app
