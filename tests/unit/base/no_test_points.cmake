# A build without tests has no switches of the tests: cmake -D SOURCE=... -D BUILD=... -P no_test_points.cmake
# Two things make that sure: one source file reads the switches, and such a build does not compile it.
file(GLOB_RECURSE sources ${SOURCE}/lib/*.cpp ${SOURCE}/lib/*.hpp ${SOURCE}/services/*.cpp ${SOURCE}/services/*.hpp)
foreach(file IN LISTS sources)
  if(NOT file MATCHES "/lib/base/test_points?\\.[ch]pp$")
    file(STRINGS ${file} found REGEX "HOLDFAST_TEST_")
    if(found)
      message(FATAL_ERROR "${file} names a switch of the tests: ${found}")
    endif()
  endif()
endforeach()

file(REMOVE_RECURSE ${BUILD})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G Ninja -D HOLDFAST_TESTS=OFF -D CMAKE_UNITY_BUILD=OFF
  OUTPUT_QUIET RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "cannot configure a build without tests")
endif()
file(READ ${BUILD}/compile_commands.json commands)
file(REMOVE_RECURSE ${BUILD})
if(commands MATCHES "/test_points\\.cpp" OR NOT commands MATCHES "/no_test_points\\.cpp")
  message(FATAL_ERROR "a build without tests compiles test_points.cpp")
endif()
