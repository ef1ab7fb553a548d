//! Expressions as instructions of a stack machine, and their evaluation on samples.
//!
//! Each instruction runs on a few hundred numbers at a time, so that its loop is vectorized and numbers stay in the
//! cache.

use crate::{
    data::{dtype::Dtype, samples::Samples},
    for_dtype, for_samples,
    kernels::pointwise::{HALF, widen},
    util::{
        error::{Error, Result},
        parallel::Parallel,
        simd,
    },
};

/// Numbers that an instruction computes at a time.
const PIECE: usize = 1 << 9;
/// Numbers that a thread computes at a time.
const TASK: usize = 1 << 14;

/// An operation on one number. Logical operations take numbers other than 0 as true, and return 1 or 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unary {
    Negate,
    Not,
    Square,
    Abs,
    Sqrt,
    Exp,
    Log,
    Floor,
    Ceil,
    Round,
}

/// An operation on two numbers. Comparisons return 1 or 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    And,
    Or,
    Min,
    Max,
}

/// An instruction. It takes its operands from the top of the stack and puts its result there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Instruction {
    Number(f64),
    /// Samples of the input with this index.
    Input(usize),
    Unary(Unary),
    Binary(Binary),
    /// The second of three numbers if the first is not 0, else the third.
    Where,
}

/// A parsed expression.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expression {
    code: Vec<Instruction>,
    /// Numbers on the stack at the end, and at most.
    height: usize,
    max_height: usize,
}

/// Samples of an input from the index `first` on.
#[derive(Debug)]
pub struct Operand<'a> {
    pub samples: &'a Samples,
    pub first: usize,
    /// Samples of the result for each sample.
    pub repeat: usize,
}

impl Operand<'_> {
    fn load(&self, start: usize, numbers: &mut [f64]) {
        if self.repeat == 1 {
            widen(self.samples, self.first + start, numbers);
            return;
        }
        #[allow(
            clippy::unnecessary_cast,
            clippy::cast_lossless,
            reason = "one of the types is f64"
        )]
        for (to, at) in numbers.iter_mut().zip(start..) {
            let at = self.first + at / self.repeat;
            *to = for_samples!(self.samples, values => values[at] as f64);
        }
    }

    /// Replaces each of `channels` numbers by the sample at its place, times `scale`. The first is at `next`.
    pub fn replace(
        &self,
        start: usize,
        numbers: &mut [f64],
        (next, channels): (usize, usize),
        scale: f64,
    ) {
        for at in (next..numbers.len()).step_by(channels) {
            let mut sample = [0.0];
            self.load(start + at, &mut sample);
            numbers[at] = sample[0] * scale;
        }
    }
}

impl Expression {
    /// Appends an instruction.
    pub fn push(&mut self, instruction: Instruction) {
        self.height = match instruction {
            Instruction::Number(_) | Instruction::Input(_) => self.height + 1,
            Instruction::Unary(_) => self.height,
            Instruction::Binary(_) => self.height - 1,
            Instruction::Where => self.height - 2,
        };
        self.max_height = self.max_height.max(self.height);
        // A square is rounded once, and faster than a power.
        let is_square = instruction == Instruction::Binary(Binary::Power)
            && self.code.last() == Some(&Instruction::Number(2.0));
        if is_square {
            self.code.pop();
            self.code.push(Instruction::Unary(Unary::Square));
        } else {
            self.code.push(instruction);
        }
    }

    /// Whether results are 0 and 1: the last operation is a comparison or a logical one.
    pub fn is_logical(&self) -> bool {
        use Binary::{And, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual, Or};
        match self.code.last() {
            Some(Instruction::Unary(own)) => *own == Unary::Not,
            Some(Instruction::Binary(own)) => {
                [And, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual, Or].contains(own)
            }
            _ => false,
        }
    }

    /// Whether results depend on the input with the index `input`.
    pub fn uses(&self, input: usize) -> bool {
        self.code.contains(&Instruction::Input(input))
    }

    /// Bytes of the stacks of all threads, without those of ordinary expressions, which are buffers of fixed size.
    pub fn stack_bytes(&self) -> u64 {
        let height = self.max_height.saturating_sub(8);
        (rayon::current_num_threads() * height * PIECE * size_of::<f64>()) as u64
    }

    /// The results for all samples of `inputs`, as `len` samples of type `dtype`. `change` may replace results, the first
    /// of which has the index that it gets. Integers are rounded, halves away from 0, and clamped to the range of the
    /// type; NaN becomes 0.
    ///
    /// # Errors
    /// When memory is exhausted.
    pub fn evaluate(
        &self,
        inputs: &[Operand<'_>],
        (dtype, len): (Dtype, usize),
        change: impl Fn(usize, &mut [f64]) + Sync,
    ) -> Result<Samples> {
        let mut result = Samples::zeros(dtype, len)?;
        for_dtype!(dtype, T in [u8 i8 u16 i16 u32 i32 f32 f64] => {
            let result: &mut [T] = bytemuck::cast_slice_mut(result.as_bytes_mut());
            let start = || vec![[0.0; PIECE]; self.max_height];
            result.chunks_mut(TASK).enumerate().par_fold(start, |stack, (task, result)| {
                for (piece, result) in result.chunks_mut(PIECE).enumerate() {
                    let first = task * TASK + piece * PIECE;
                    self.run(stack, inputs, first, result.len());
                    let numbers = &mut stack[0][..result.len()];
                    change(first, numbers);
                    simd::vectorize(#[inline(always)] || {
                        for (to, &number) in result.iter_mut().zip(&*numbers) {
                            // The sign of NaN depends on the processor.
                            let number = if number.is_nan() { f64::NAN } else { number };
                            let rounded = number + HALF.copysign(number);
                            *to = if dtype.is_float() { number } else { rounded } as T;
                        }
                    });
                }
            });
        }, other => return Err(Error::bad_input(format_args!("unsupported sample type {other}"))));
        Ok(result)
    }

    /// Computes `len` numbers from the index `first` on. They are at the bottom of the stack at the end.
    fn run(&self, stack: &mut [[f64; PIECE]], inputs: &[Operand<'_>], first: usize, len: usize) {
        let mut height = 0;
        for instruction in &self.code {
            match *instruction {
                Instruction::Number(number) => {
                    stack[height][..len].fill(number);
                    height += 1;
                }
                Instruction::Input(input) => {
                    inputs[input].load(first, &mut stack[height][..len]);
                    height += 1;
                }
                Instruction::Unary(operation) => operation.apply(&mut stack[height - 1][..len]),
                Instruction::Binary(operation) => {
                    height -= 1;
                    let (low, high) = stack.split_at_mut(height);
                    operation.apply(&mut low[height - 1][..len], &high[0][..len]);
                }
                Instruction::Where => {
                    height -= 2;
                    let (low, high) = stack.split_at_mut(height);
                    let choices = high[0].iter().zip(&high[1]);
                    for (to, (&yes, &no)) in low[height - 1][..len].iter_mut().zip(choices) {
                        *to = if *to == 0.0 { no } else { yes };
                    }
                }
            }
        }
    }
}

/// The loop of an operation on each of `numbers`.
#[inline]
fn map(numbers: &mut [f64], operation: impl Fn(f64) -> f64) {
    simd::vectorize(
        #[inline(always)]
        || numbers.iter_mut().for_each(|number| *number = operation(*number)),
    );
}

impl Unary {
    fn apply(self, numbers: &mut [f64]) {
        match self {
            Self::Negate => map(numbers, |x| -x),
            Self::Not => map(numbers, |x| f64::from(x == 0.0)),
            Self::Square => map(numbers, |x| x * x),
            Self::Abs => map(numbers, f64::abs),
            Self::Sqrt => map(numbers, f64::sqrt),
            Self::Exp => map(numbers, libm::exp),
            Self::Log => map(numbers, libm::log),
            Self::Floor => map(numbers, f64::floor),
            Self::Ceil => map(numbers, f64::ceil),
            Self::Round => map(numbers, f64::round),
        }
    }
}

/// The remainder with the sign of the divisor, as in Python and NumPy.
fn remainder(x: f64, y: f64) -> f64 {
    let rest = x % y;
    if rest == 0.0 {
        rest.copysign(y)
    } else if (rest < 0.0) == (y < 0.0) {
        rest
    } else {
        rest + y
    }
}

impl Binary {
    fn apply(self, numbers: &mut [f64], right: &[f64]) {
        #[inline]
        fn zip(numbers: &mut [f64], right: &[f64], operation: impl Fn(f64, f64) -> f64) {
            simd::vectorize(
                #[inline(always)]
                || {
                    for (number, &right) in numbers.iter_mut().zip(right) {
                        *number = operation(*number, right);
                    }
                },
            );
        }
        match self {
            Self::Add => zip(numbers, right, |x, y| x + y),
            Self::Subtract => zip(numbers, right, |x, y| x - y),
            Self::Multiply => zip(numbers, right, |x, y| x * y),
            Self::Divide => zip(numbers, right, |x, y| x / y),
            Self::Remainder => zip(numbers, right, remainder),
            // The standard library calls that of the operating system, whose results differ in their last bits.
            Self::Power => zip(numbers, right, libm::pow),
            Self::Less => zip(numbers, right, |x, y| f64::from(x < y)),
            Self::LessOrEqual => zip(numbers, right, |x, y| f64::from(x <= y)),
            Self::Greater => zip(numbers, right, |x, y| f64::from(x > y)),
            Self::GreaterOrEqual => zip(numbers, right, |x, y| f64::from(x >= y)),
            Self::Equal => zip(numbers, right, |x, y| f64::from(x == y)),
            Self::NotEqual => zip(numbers, right, |x, y| f64::from(x != y)),
            Self::And => zip(numbers, right, |x, y| f64::from(x != 0.0 && y != 0.0)),
            Self::Or => zip(numbers, right, |x, y| f64::from(x != 0.0 || y != 0.0)),
            // NaN if one of them is.
            Self::Min => zip(numbers, right, |x, y| if x < y || x.is_nan() { x } else { y }),
            Self::Max => zip(numbers, right, |x, y| if x > y || x.is_nan() { x } else { y }),
        }
    }
}
