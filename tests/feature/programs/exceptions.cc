// A C++ program without frame pointers, for the tests of unwinding: exceptions that pass several frames, and the standard library.
//
//   exceptions steps    stops itself, calls each kind of code one time, and ends
//   exceptions loop     calls them until it is killed
#include <algorithm>
#include <csignal>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

struct Guard {
	std::string text;
	~Guard()
	{
		text.clear();
	}
};

__attribute__((noinline)) int descend(int depth)
{
	Guard guard{ std::to_string(depth) };

	if (depth == 0)
		throw std::runtime_error(guard.text);
	return descend(depth - 1) + static_cast<int>(guard.text.size());
}

__attribute__((noinline)) std::size_t sorted(int count)
{
	std::map<std::string, int> numbers;
	std::vector<std::string> words;

	for (int i = 0; i < count; i++)
		numbers[std::to_string(i * 7919 % 100)] = i;
	for (const auto &each : numbers)
		words.push_back(each.first);
	std::sort(words.begin(), words.end(),
		[](const std::string &a, const std::string &b) { return b < a; });
	return words.size();
}

std::size_t work(int count)
{
	std::size_t sum = sorted(count);

	try {
		sum += static_cast<std::size_t>(descend(3));
	} catch (const std::runtime_error &error) {
		sum += std::string(error.what()).size();
	}
	return sum;
}

} // namespace

int main(int argc, char **argv)
{
	std::size_t sum = 0;
	bool loops = argc > 1 && std::string(argv[1]) == "loop";

	if (!loops)
		std::raise(SIGSTOP);
	do
		sum += work(loops ? 50 : 5);
	while (loops);
	return sum == 0;
}
