# octavo._engine: the engine's libraries as a module of Python, by nanobind. With OCTAVO_PYTHON only, since all of them are
# then compiled to stand in a shared library; packaging/python/pyproject.toml has a build folder of its own for it.
find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)
nanobind_add_module(octavo_python NB_STATIC NOMINSIZE packaging/python/bindings.cc)
set_target_properties(octavo_python PROPERTIES OUTPUT_NAME _engine)
target_link_libraries(octavo_python PRIVATE octavo_engine)
target_link_options(octavo_python PRIVATE -Wl,--exclude-libs,ALL)
install(TARGETS octavo_python LIBRARY DESTINATION octavo COMPONENT python)
