/* As much of NVIDIA's driver as trtc asks before it opens an engine: one GPU of compute capability 8.9. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

int cuInit(unsigned flags) { return flags != 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDeviceGetName(char *name, int length, int device) {
    (void)device;
    strncpy(name, "Stand-in", length);
    return 0;
}
/* 75 and 76 are the two halves of the compute capability. */
int cuDeviceGetAttribute(int *value, int which, int device) {
    (void)device;
    *value = which == 75 ? 8 : which == 76 ? 9 : 0;
    return 0;
}
int cuDeviceGetUuid(char *uuid, int device) { memset(uuid, 17 + device, 16); return 0; }
int cuDeviceTotalMem(size_t *bytes, int device) { (void)device; *bytes = (size_t)24 << 30; return 0; }

int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long long flags, int *status) {
    (void)version;
    (void)flags;
    void *self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    *found = self ? dlsym(self, name) : 0;
    if (status) *status = *found ? 0 : 1;
    return *found ? 0 : 500; /* CUDA_ERROR_NOT_FOUND */
}
