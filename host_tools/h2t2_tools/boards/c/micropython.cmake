# The policies and the kernels in C for a firmware of MicroPython: make ... USER_C_MODULES=this folder
set(folder ${CMAKE_CURRENT_LIST_DIR})
set(steps ${folder}/h2t2.c ${folder}/adaptive.c ${folder}/ordered.c ${folder}/kernels.c)
set_source_files_properties(${steps} PROPERTIES COMPILE_OPTIONS "-O2;-fwrapv")
add_library(usermod_h2t2 INTERFACE)
target_sources(usermod_h2t2 INTERFACE ${steps} ${folder}/firmware.c)
target_link_libraries(usermod INTERFACE usermod_h2t2)
