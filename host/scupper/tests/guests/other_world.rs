//! A component for something else.

wit_bindgen::generate!({
    inline: "package shop:cart; world cart { export total: func() -> u32; }",
});

struct Cart;

impl Guest for Cart {
    fn total() -> u32 {
        42
    }
}

export!(Cart);
