// Methods of text.
#pragma once

#include <vector>

#include "method.h"

namespace tokenweir::templates {

const std::vector<Method>& text_methods();

}  // namespace tokenweir::templates
