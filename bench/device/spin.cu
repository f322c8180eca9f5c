// Keeps the device busy for so many ticks of its clock.
extern "C" __global__ void spin(long long ticks) {
  const long long begin = clock64();
  while (clock64() - begin < ticks) {
  }
}
