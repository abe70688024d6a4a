// The one translation unit with Boost.Process v2's own code (see BOOST_PROCESS_V2_SEPARATE_COMPILATION in
// CMakeLists.txt).
#include <boost/process/v2/src.hpp>
