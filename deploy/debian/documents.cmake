# What the installed program says of itself: its manual and its completions; and the papers of the package. Run by
# `cmake --install`. Variables: source, version, release. Compressed without names and times: two builds are the same.
set(root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")

# output_of(<file below the prefix> <arguments of holdfast>...)
function(output_of file)
  get_filename_component(directory "${root}/${file}" DIRECTORY)
  file(MAKE_DIRECTORY "${directory}")
  execute_process(COMMAND "${root}/bin/holdfast" ${ARGN} OUTPUT_FILE "${root}/${file}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()
output_of(share/bash-completion/completions/holdfast completion bash)
output_of(share/zsh/vendor-completions/_holdfast completion zsh)
output_of(share/fish/vendor_completions.d/holdfast.fish completion fish)
output_of(share/man/man1/holdfast.1 manual)
foreach(companion holdfast-capture holdfast-guard holdfast-shim)
  file(WRITE "${root}/share/man/man1/${companion}.1" ".so man1/holdfast.1\n")
endforeach()

set(documents "${root}/share/doc/holdfast")
file(MAKE_DIRECTORY "${documents}")
configure_file("${source}/deploy/debian/copyright" "${documents}/copyright" COPYONLY)
configure_file("${source}/CHANGELOG.md" "${documents}/changelog" COPYONLY)
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  set(epoch $ENV{SOURCE_DATE_EPOCH})
else()
  file(TIMESTAMP "${source}/CHANGELOG.md" epoch "%s" UTC)
endif()
execute_process(COMMAND date -u -R -d @${epoch} OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE)
file(WRITE "${documents}/changelog.Debian" "holdfast (${version}-1~${release}) ${release}; urgency=medium

  * Version ${version}; changelog.gz says what is in it.

 -- Holdfast <packages@holdfast.dev>  ${date}
")
file(GLOB papers "${root}/share/man/man1/holdfast*.1" "${documents}/changelog*")
execute_process(COMMAND gzip -9nf ${papers} COMMAND_ERROR_IS_FATAL ANY)
