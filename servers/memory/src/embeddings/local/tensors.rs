//! Reads `model.safetensors`: a length, a header in JSON, and the numbers.

use std::collections::HashMap;

use serde::Deserialize;

/// Longest header.
const MAX_HEADER: usize = 16 * 1024 * 1024;

/// What is said of one table of numbers.
#[derive(Deserialize)]
struct Described {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

/// The tables of a file.
pub(super) struct Tensors<'a> {
    described: HashMap<String, Described>,
    data: &'a [u8],
}

/// A table of numbers.
pub(super) struct Tensor<'a> {
    kind: String,
    pub(super) shape: Vec<usize>,
    data: &'a [u8],
}

impl<'a> Tensors<'a> {
    pub(super) fn read(file: &'a [u8]) -> Result<Tensors<'a>, String> {
        let (length, rest) = file.split_first_chunk::<8>().ok_or("it is too short")?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > MAX_HEADER || length > rest.len() {
            return Err("its header is longer than it may be".to_owned());
        }
        let (header, data) = rest.split_at(length);
        let mut members: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(header).map_err(|error| format!("its header cannot be read: {error}"))?;
        members.remove("__metadata__");
        let described = members
            .into_iter()
            .map(|(name, value)| {
                Ok((name, serde_json::from_value(value).map_err(|error| error.to_string())?))
            })
            .collect::<Result<_, String>>()?;
        Ok(Tensors { described, data })
    }

    /// The table of this name, if there is one.
    pub(super) fn get(&self, name: &str) -> Result<Option<Tensor<'a>>, String> {
        let Some(described) = self.described.get(name) else { return Ok(None) };
        let (from, to) = described.data_offsets;
        let data = self.data.get(from..to).ok_or_else(|| format!("{name} is not all there"))?;
        let tensor = Tensor { kind: described.dtype.clone(), shape: described.shape.clone(), data };
        let count = tensor.shape.iter().try_fold(1_usize, |count, n| count.checked_mul(*n));
        match count.and_then(|count| count.checked_mul(tensor.width()?)) {
            Some(bytes) if bytes == data.len() => Ok(Some(tensor)),
            _ => Err(format!(
                "{name} has not as many numbers as its shape says, or numbers of the kind {}",
                tensor.kind
            )),
        }
    }
}

impl Tensor<'_> {
    /// How many bytes a number has.
    fn width(&self) -> Option<usize> {
        match self.kind.as_str() {
            "F64" | "I64" => Some(8),
            "F32" | "I32" => Some(4),
            "F16" | "BF16" => Some(2),
            "I8" => Some(1),
            _ => None,
        }
    }

    /// The numbers.
    pub(super) fn reals(&self) -> Vec<f32> {
        match self.kind.as_str() {
            "F64" => self.chunks(|bytes| f64::from_le_bytes(bytes) as f32),
            "I64" => self.chunks(|bytes| i64::from_le_bytes(bytes) as f32),
            "F32" => self.chunks(f32::from_le_bytes),
            "I32" => self.chunks(|bytes| i32::from_le_bytes(bytes) as f32),
            "F16" => self.chunks(|bytes| half(u16::from_le_bytes(bytes))),
            "BF16" => self.chunks(|bytes| f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)),
            _ => self.chunks(|[byte]: [u8; 1]| f32::from(byte as i8)),
        }
    }

    /// The numbers, if they are whole ones.
    pub(super) fn places(&self) -> Option<Vec<usize>> {
        match self.kind.as_str() {
            "I64" => {
                Some(self.chunks(|bytes| usize::try_from(i64::from_le_bytes(bytes)).unwrap_or(usize::MAX)))
            }
            "I32" => {
                Some(self.chunks(|bytes| usize::try_from(i32::from_le_bytes(bytes)).unwrap_or(usize::MAX)))
            }
            _ => None,
        }
    }

    fn chunks<const N: usize, T>(&self, read: impl Fn([u8; N]) -> T) -> Vec<T> {
        self.data.as_chunks::<N>().0.iter().map(|bytes| read(*bytes)).collect()
    }
}

/// A number of 16 bits: one for the sign, five for the exponent, ten for the rest.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, rest) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    sign * match exponent {
        0 => rest * 2_f32.powi(-24),
        0x1f if rest == 0.0 => f32::INFINITY,
        0x1f => f32::NAN,
        _ => (1.0 + rest / 1024.0) * 2_f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_16_bits() {
        for (bits, number) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x0001, 5.960_464_5e-8),
            (0x7bff, 65504.0),
            (0, 0.0),
        ] {
            assert_eq!(half(bits), number, "{bits:x}");
        }
        assert!(half(0x7c00).is_infinite() && half(0x7e00).is_nan());
    }

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.extend(data);
        file
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        assert!(Tensors::read(b"short").is_err());
        assert!(Tensors::read(&u64::MAX.to_le_bytes()).is_err());
        assert!(Tensors::read(&file("{", b"")).is_err());
        for header in [
            r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}"#,
            r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,40]}}"#,
            r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}"#,
            r#"{"a":{"dtype":"C64","shape":[1],"data_offsets":[0,4]}}"#,
            r#"{"a":{"dtype":"F32","shape":[18446744073709551615,2],"data_offsets":[0,4]}}"#,
        ] {
            let file = file(header, &[0; 8]);
            assert!(Tensors::read(&file).unwrap().get("a").is_err(), "{header}");
        }
        let good = file(
            r#"{"__metadata__":{"x":"y"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}"#,
            &[0; 8],
        );
        let tensors = Tensors::read(&good).unwrap();
        assert_eq!(tensors.get("a").unwrap().unwrap().reals(), [0.0, 0.0]);
        assert!(tensors.get("b").unwrap().is_none());
    }
}
