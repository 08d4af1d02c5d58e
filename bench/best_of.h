#pragma once
#include "regard/bench/timing.h"
