// Must not compile: nvcc warns of a variable that is not used, in code for the device.
__global__ void fill(int* target) {
  int never_used = 3;
  *target = 1;
}
