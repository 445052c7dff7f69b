# Warnings for all parts; sanitizers for what runs outside the target.
add_compile_options(-Wall -Wextra -Wshadow -Wpointer-arith -Wwrite-strings -Wundef -Wvla -Wformat=2 -fno-common
  "$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes>")
# The attribute noclone, which clang does not need.
add_compile_options("$<$<COMPILE_LANG_AND_ID:C,Clang>:-Wno-unknown-attributes>"
  "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-unknown-attributes>")
if(MEMATTACH_WERROR)
  add_compile_options(-Werror)
endif()
add_compile_definitions(_GNU_SOURCE)

# Applies MEMATTACH_SANITIZE and MEMATTACH_COVERAGE to a target and to what links it.
function(memattach_sanitize target)
  if(MEMATTACH_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${MEMATTACH_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${MEMATTACH_SANITIZE})
  endif()
  if(MEMATTACH_COVERAGE)
    target_compile_options(${target} PUBLIC --coverage -fprofile-update=atomic)
    target_link_options(${target} PUBLIC --coverage)
  endif()
endfunction()
