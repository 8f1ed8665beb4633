// A library of one plug-in: as little as TensorRT's registry, parser and builder look at. It computes nothing.
//
// No header of TensorRT is there to be included (full TensorRT cannot be installed where trtc is developed). The classes
// below have the virtual functions that the library calls, in the order of its documentation; their names are ours.
// -DOPERATOR='"Name"' sets the operator that it stands for.

#include <cstddef>
#include <cstdint>

#ifndef OPERATOR
#define OPERATOR "Same"
#endif

namespace {

struct Info {
    char const* kind;
    int32_t major, minor;
};

struct Fields {
    int32_t count;
    void const* fields;
};

struct Sizes {
    int32_t count;
    int64_t sizes[8];
};

struct Expressions {
    int32_t count;
    void const* sizes[8];
};

struct Tensor {
    Sizes sizes;
    int32_t type, format;
    float scale;
};

struct RangedTensor {
    Tensor tensor;
    Sizes min, max, opt;
};

constexpr Fields NO_FIELDS{0, nullptr};

struct Versioned {
    virtual int32_t language() const noexcept { return 0; }
    virtual Info info() const noexcept = 0;
    virtual ~Versioned() noexcept = default;
};

struct Plugin : Versioned {
    Info info() const noexcept override { return {"PLUGIN", 1, 0}; }
    virtual Versioned* part(int32_t kind) noexcept = 0;
    virtual Plugin* clone() noexcept = 0;
};

struct Core final : Versioned {
    Info info() const noexcept override { return {"PLUGIN_V3ONE_CORE", 1, 0}; }
    virtual char const* name() const noexcept { return OPERATOR; }
    virtual char const* version() const noexcept { return "1"; }
    virtual char const* name_space() const noexcept { return ""; }
};

struct Build final : Versioned {
    Info info() const noexcept override { return {"PLUGIN_V3ONE_BUILD", 1, 0}; }
    virtual int32_t configure(RangedTensor const*, int32_t, RangedTensor const*, int32_t) noexcept { return 0; }
    virtual int32_t types(int32_t* outputs, int32_t, int32_t const* inputs, int32_t) const noexcept
    {
        outputs[0] = inputs[0];
        return 0;
    }
    virtual int32_t shapes(
        Expressions const* inputs, int32_t, Expressions const*, int32_t, Expressions* outputs, int32_t, void*) noexcept
    {
        outputs[0] = inputs[0];
        return 0;
    }
    virtual bool takes(int32_t i, RangedTensor const* all, int32_t, int32_t) noexcept
    {
        return all[i].tensor.type == 0 && all[i].tensor.format == 0;
    }
    virtual int32_t outputs() const noexcept { return 1; }
    virtual size_t workspace(RangedTensor const*, int32_t, RangedTensor const*, int32_t) const noexcept { return 0; }
    virtual int32_t tactics(int32_t*, int32_t) noexcept { return 0; }
    virtual int32_t tactic_count() noexcept { return 0; }
    virtual char const* timing_id() noexcept { return nullptr; }
    virtual int32_t most_formats() noexcept { return 100; }
    virtual char const* described() noexcept { return nullptr; }
};

struct Runtime final : Versioned {
    Info info() const noexcept override { return {"PLUGIN_V3ONE_RUNTIME", 1, 0}; }
    virtual int32_t choose(int32_t) noexcept { return 0; }
    virtual int32_t resized(Tensor const*, int32_t, Tensor const*, int32_t) noexcept { return 0; }
    virtual int32_t run(Tensor const*, Tensor const*, void const* const*, void* const*, void*, void*) noexcept
    {
        return 1;
    }
    virtual Plugin* attach(void*) noexcept;
    virtual Fields const* saved() noexcept { return &NO_FIELDS; }
};

struct Same final : Plugin {
    Core core;
    Build build;
    Runtime runtime;
    Versioned* part(int32_t kind) noexcept override
    {
        if (kind == 0) {
            return &core;
        }
        return kind == 1 ? static_cast<Versioned*>(&build) : &runtime;
    }
    Plugin* clone() noexcept override { return new Same; }
};

Plugin* Runtime::attach(void*) noexcept { return new Same; }

struct Creator final : Versioned {
    Info info() const noexcept override { return {"PLUGIN CREATOR_V3ONE", 1, 0}; }
    virtual Plugin* create(char const*, Fields const*, int32_t) noexcept { return new Same; }
    virtual Fields const* fields() noexcept { return &NO_FIELDS; }
    virtual char const* name() const noexcept { return OPERATOR; }
    virtual char const* version() const noexcept { return "1"; }
    virtual char const* name_space() const noexcept { return ""; }
};

}  // namespace

extern "C" void setLoggerFinder(void*) {}

extern "C" void* const* getCreators(int32_t& count)
{
    static Creator creator;
    static void* const all[] = {&creator};
    count = 1;
    return all;
}
