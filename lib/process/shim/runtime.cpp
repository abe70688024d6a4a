// What the shim needs of a C library, on x86-64: its start, system calls, a few functions on strings. Before main, the
// library's own static start asks the processor what it is, some forty times, and a virtual machine answers each in
// several microseconds: more than all else that supervision costs. Only for the shim, which has one thread, no
// locale, no library. Elsewhere the shim is linked to the C library as usual.
//
// The headers of the library are not included: what they declare is defined here.

#include <asm/unistd.h>
#include <stdarg.h>
#include <stddef.h>

extern "C" {

char** environ;
int main(int, char**); // NOLINT: called by _start

// The kernel leaves argc, argv and the environment on the stack.
asm(R"(
  .globl _start
  .type _start, @function
_start:
  xor %ebp, %ebp
  mov (%rsp), %rdi
  lea 8(%rsp), %rsi
  lea 8(%rsi, %rdi, 8), %rax
  mov %rax, environ(%rip)
  and $-16, %rsp
  call main
  mov %eax, %edi
  mov $231, %eax
  syscall
  hlt
)");

int last_error;
int* __errno_location() { return &last_error; }

// The return address goes into a register: parent and child return on the same stack, and the child's calls would
// overwrite it.
asm(R"(
  .globl vfork
  .type vfork, @function
vfork:
  pop %rdx
  mov $58, %eax
  syscall
  push %rdx
  cmp $-4095, %rax
  jae 1f
  ret
1:
  neg %eax
  mov %eax, last_error(%rip)
  mov $-1, %rax
  ret
)");

static long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  if (result >= 0 || result < -4095) return result;
  last_error = static_cast<int>(-result);
  return -1;
}
static int call_int(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  return static_cast<int>(call(number, a, b, c, d, e, f));
}
static long at(const void* pointer) { return reinterpret_cast<long>(pointer); }
static constexpr long kSignalSet = 8; // bytes that the kernel knows of

[[noreturn]] void _exit(int status) {
  for (;;)
    call(__NR_exit_group, status);
}
long syscall(long number, long a, long b, long c, long d, long e, long f) { return call(number, a, b, c, d, e, f); }
int access(const char* path, int mode) { return call_int(__NR_access, at(path), mode); }
int chdir(const char* path) { return call_int(__NR_chdir, at(path)); }
int clock_gettime(int clock, void* time) { return call_int(__NR_clock_gettime, clock, at(time)); }
int close(int fd) { return call_int(__NR_close, fd); }
int close_range(unsigned first, unsigned last, int flags) { return call_int(__NR_close_range, first, last, flags); }
int execve(const char* path, char* const* argv, char* const* env) {
  return call_int(__NR_execve, at(path), at(argv), at(env));
}
int faccessat(int directory, const char* path, int mode, int) {
  return call_int(__NR_faccessat, directory, at(path), mode);
}
long getdents64(int fd, void* buffer, size_t size) {
  return call(__NR_getdents64, fd, at(buffer), static_cast<long>(size));
}
int getpgid(int pid) { return call_int(__NR_getpgid, pid); }
int getpid() { return call_int(__NR_getpid); }
int getppid() { return call_int(__NR_getppid); }
int getrlimit(int resource, void* limit) { return call_int(__NR_getrlimit, resource, at(limit)); }
int getrusage(int who, void* usage) { return call_int(__NR_getrusage, who, at(usage)); }
int kill(int pid, int signal) { return call_int(__NR_kill, pid, signal); }
int mkdir(const char* path, unsigned mode) { return call_int(__NR_mkdir, at(path), mode); }
void* mmap(void* address, size_t size, int protection, int flags, int fd, long offset) {
  return reinterpret_cast<void*>(call(__NR_mmap, at(address), static_cast<long>(size), protection, flags, fd, offset));
}
int nanosleep(const void* time, void* rest) { return call_int(__NR_nanosleep, at(time), at(rest)); }
// The mode counts only if O_CREAT is there, which the shim never asks for.
int open(const char* path, int flags, ...) { return call_int(__NR_open, at(path), flags); }
int openat(int directory, const char* path, int flags, ...) {
  return call_int(__NR_openat, directory, at(path), flags);
}
int poll(void* waits, unsigned long count, int timeout) {
  return call_int(__NR_poll, at(waits), static_cast<long>(count), timeout);
}
int prctl(int option, ...) {
  va_list list;
  va_start(list, option);
  const long value = va_arg(list, long);
  va_end(list);
  return call_int(__NR_prctl, option, value);
}
long read(int fd, void* buffer, size_t size) { return call(__NR_read, fd, at(buffer), static_cast<long>(size)); }
long recv(int fd, void* buffer, size_t size, int flags) {
  return call(__NR_recvfrom, fd, at(buffer), static_cast<long>(size), flags);
}
int rmdir(const char* path) { return call_int(__NR_rmdir, at(path)); }
long send(int fd, const void* data, size_t size, int flags) {
  return call(__NR_sendto, fd, at(data), static_cast<long>(size), flags);
}
int setrlimit(int resource, const void* limit) { return call_int(__NR_setrlimit, resource, at(limit)); }
int setsid() { return call_int(__NR_setsid); }
int signalfd(int fd, const void* set, int flags) { return call_int(__NR_signalfd4, fd, at(set), kSignalSet, flags); }
int sigprocmask(int how, const void* set, void* old) {
  return call_int(__NR_rt_sigprocmask, how, at(set), at(old), kSignalSet);
}
int wait4(int pid, int* status, int options, void* usage) {
  return call_int(__NR_wait4, pid, at(status), options, at(usage));
}
long write(int fd, const void* data, size_t size) { return call(__NR_write, fd, at(data), static_cast<long>(size)); }
// Only _SC_CLK_TCK is asked for, which the kernel tells everybody to be this.
long sysconf(int) { return 100; }

int sigemptyset(unsigned long* set) {
  *set = 0;
  return 0;
}
int sigfillset(unsigned long* set) {
  *set = ~0ul;
  return 0;
}
int sigaddset(unsigned long* set, int signal) {
  *set |= 1ul << (signal - 1);
  return 0;
}

// The compiler puts calls to these where it likes.
void* memset(void* to, int value, size_t size) {
  for (size_t i = 0; i < size; ++i)
    static_cast<char*>(to)[i] = static_cast<char>(value);
  return to;
}
void* memcpy(void* to, const void* from, size_t size) {
  for (size_t i = 0; i < size; ++i)
    static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
  return to;
}

void* memmove(void* to, const void* from, size_t size) {
  if (to <= from) return memcpy(to, from, size);
  for (size_t i = size; i > 0; --i)
    static_cast<char*>(to)[i - 1] = static_cast<const char*>(from)[i - 1];
  return to;
}
int memcmp(const void* a, const void* b, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (const int difference = static_cast<const unsigned char*>(a)[i] - static_cast<const unsigned char*>(b)[i])
      return difference;
  return 0;
}

size_t strlen(const char* text) {
  size_t length = 0;
  while (text[length] != '\0')
    ++length;
  return length;
}
int strncmp(const char* a, const char* b, size_t most) {
  for (size_t i = 0; i < most; ++i)
    if (a[i] != b[i] || a[i] == '\0') return static_cast<unsigned char>(a[i]) - static_cast<unsigned char>(b[i]);
  return 0;
}
char* strchr(const char* text, int wanted) {
  for (;; ++text) {
    if (*text == static_cast<char>(wanted)) return const_cast<char*>(text);
    if (*text == '\0') return nullptr;
  }
}
char* strrchr(const char* text, int wanted) {
  const char* found = nullptr;
  for (; (text = strchr(text, wanted)) != nullptr; ++text)
    found = text;
  return const_cast<char*>(found);
}
char* strstr(const char* text, const char* wanted) {
  const size_t length = strlen(wanted);
  for (; *text != '\0'; ++text)
    if (strncmp(text, wanted, length) == 0) return const_cast<char*>(text);
  return nullptr;
}

// Decimal; too large a number is the largest, as with the library.
unsigned long strtoull(const char* text, char** end, int) {
  const char* at_digit = text;
  while (*at_digit == ' ' || (*at_digit >= '\t' && *at_digit <= '\r'))
    ++at_digit;
  const bool negative = *at_digit == '-';
  if (negative || *at_digit == '+') ++at_digit;
  unsigned long value = 0;
  bool any = false, over = false;
  for (; *at_digit >= '0' && *at_digit <= '9'; ++at_digit, any = true) {
    over |= __builtin_mul_overflow(value, 10ul, &value);
    over |= __builtin_add_overflow(value, static_cast<unsigned long>(*at_digit - '0'), &value);
  }
  if (end != nullptr) *end = const_cast<char*>(any ? at_digit : text);
  return over ? ~0ul : negative ? -value : value;
}
long strtol(const char* text, char** end, int base) { return static_cast<long>(strtoull(text, end, base)); }
long strtoll(const char* text, char** end, int base) { return strtol(text, end, base); }
// As newer headers of the library call them.
unsigned long __isoc23_strtoull(const char* text, char** end, int base) { return strtoull(text, end, base); }
long __isoc23_strtol(const char* text, char** end, int base) { return strtol(text, end, base); }
long __isoc23_strtoll(const char* text, char** end, int base) { return strtol(text, end, base); }

// Knows %d of what is not negative, %llu, and plain text.
int snprintf(char* to, size_t size, const char* format, ...) {
  size_t length = 0;
  const auto put = [&](char letter) {
    if (length + 1 < size) to[length] = letter;
    ++length;
  };
  va_list list;
  va_start(list, format);
  for (; *format != '\0'; ++format) {
    if (*format != '%') {
      put(*format);
      continue;
    }
    unsigned long value = 0;
    if (format[1] == 'd') {
      value = static_cast<unsigned long>(va_arg(list, int));
    } else {
      value = va_arg(list, unsigned long);
      format += 2;
    }
    ++format;
    char digits[24];
    size_t count = 0;
    do
      digits[count++] = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    while (count > 0)
      put(digits[--count]);
  }
  va_end(list);
  if (size > 0) to[length < size ? length : size - 1] = '\0';
  return static_cast<int>(length);
}

} // extern "C"
