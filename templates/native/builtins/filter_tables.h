// The tables of filters by subject, which find_filter looks through.
#pragma once

#include <vector>

#include "values/filter.h"

namespace tokenweir::templates {

const std::vector<Filter>& value_filters();
const std::vector<Filter>& sequence_filters();
const std::vector<Filter>& item_filters();

}  // namespace tokenweir::templates
