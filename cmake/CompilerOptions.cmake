# Warnings for all parts; sanitizers for what runs outside the target.
add_compile_options(-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
  -Wwrite-strings -Wundef -Wvla -Wformat=2 -fno-common)
if(MEMATTACH_WERROR)
  add_compile_options(-Werror)
endif()
add_compile_definitions(_GNU_SOURCE)

# Applies MEMATTACH_SANITIZE to a target and to what links it.
function(memattach_sanitize target)
  if(MEMATTACH_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${MEMATTACH_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${MEMATTACH_SANITIZE})
  endif()
endfunction()
