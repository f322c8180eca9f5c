// Methods of text.
#pragma once

#include <vector>

#include "values/method.h"

namespace tokenweir::templates {

const std::vector<Method>& text_methods();

}  // namespace tokenweir::templates
