CELL.rnn = (given, recurrent) => ({ hidden: given.map((value, at) => Math.tanh(value + recurrent[at])) });
