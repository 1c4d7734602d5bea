;; The two inner loops of the vector search, with SIMD: sixteen bytes, or four 32-bit numbers, per instruction. The build
;; assembles this file (scripts/wat.mjs).
;;
;; All parameters are i32: byte addresses in `memory`, and counts, which must be at least 1.
(module
  ;; In pages of 64 KiB. It grows with the number of vectors.
  (memory (export "memory") 1)

  ;; For each code, the sum of the entries that it selects in a query's lookup tables, sixteen codes at a time. A code has
  ;; one bit per dimension. Four bits select one of the sixteen bytes of the query's table for these four dimensions.
  ;;
  ;; Layout of `codes`: groups of sixteen codes, `pairs` bytes each, interleaved: the first byte of all sixteen codes, then
  ;; their second bytes, and so on. Layout of `tables`: for each byte of a code 32 bytes, the table of its low four bits and
  ;; that of its high four bits. Entries are at most 127, so that the sum of two fits in a byte. `out` receives sixteen unsigned
  ;; 16-bit sums for each group, in the order of the codes.
  (func (export "lookupSums")
    (param $tables i32) (param $codes i32) (param $groups i32) (param $pairs i32) (param $out i32)
    (local $left i32) (local $table i32)
    ;; The partial sums of the first eight codes of the group, and of the other eight.
    (local $first v128) (local $second v128)
    (local $found v128)
    (loop $group
      (local.set $first (v128.const i64x2 0 0))
      (local.set $second (v128.const i64x2 0 0))
      (local.set $table (local.get $tables))
      (local.set $left (local.get $pairs))
      (loop $byte
        (local.set $found (v128.load (local.get $codes)))
        (local.set $found
          (i8x16.add
            ;; A swizzle looks up sixteen indexes in a table of sixteen bytes.
            (i8x16.swizzle
              (v128.load (local.get $table))
              (v128.and (local.get $found) (i8x16.splat (i32.const 15))))
            (i8x16.swizzle
              (v128.load offset=16 (local.get $table))
              (i8x16.shr_u (local.get $found) (i32.const 4)))))
        (local.set $first
          (i16x8.add (local.get $first) (i16x8.extend_low_i8x16_u (local.get $found))))
        (local.set $second
          (i16x8.add (local.get $second) (i16x8.extend_high_i8x16_u (local.get $found))))
        (local.set $table (i32.add (local.get $table) (i32.const 32)))
        (local.set $codes (i32.add (local.get $codes) (i32.const 16)))
        (br_if $byte (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
      (v128.store (local.get $out) (local.get $first))
      (v128.store offset=16 (local.get $out) (local.get $second))
      (local.set $out (i32.add (local.get $out) (i32.const 32)))
      (br_if $group (local.tee $groups (i32.sub (local.get $groups) (i32.const 1))))))

  ;; The dot products of a query of signed 16-bit numbers with `count` codes of signed bytes. `places` holds the address of
  ;; each code (i32). Query and codes have `blocks` · 64 numbers, filled up with zeros. `out` receives one i32
  ;; for each code.
  (func (export "dotProducts")
    (param $query i32) (param $places i32) (param $count i32) (param $blocks i32) (param $out i32)
    (local $left i32) (local $asked i32) (local $code i32)
    ;; Two alternating sums, because each addition would wait for the one before.
    (local $one v128) (local $other v128)
    (loop $each
      (local.set $one (v128.const i64x2 0 0))
      (local.set $other (v128.const i64x2 0 0))
      (local.set $asked (local.get $query))
      (local.set $left (local.get $blocks))
      (local.set $code (i32.load (local.get $places)))
      (loop $block
        ;; Eight numbers per step: bytes are widened to 16 bits, and the products are added in pairs.
        (local.set $one (i32x4.add (local.get $one)
          (i32x4.dot_i16x8_s (v128.load8x8_s (local.get $code)) (v128.load (local.get $asked)))))
        (local.set $other (i32x4.add (local.get $other)
          (i32x4.dot_i16x8_s (v128.load8x8_s offset=8 (local.get $code)) (v128.load offset=16 (local.get $asked)))))
        (local.set $one (i32x4.add (local.get $one)
          (i32x4.dot_i16x8_s (v128.load8x8_s offset=16 (local.get $code)) (v128.load offset=32 (local.get $asked)))))
        (local.set $other (i32x4.add (local.get $other)
          (i32x4.dot_i16x8_s (v128.load8x8_s offset=24 (local.get $code)) (v128.load offset=48 (local.get $asked)))))
        (local.set $one (i32x4.add (local.get $one)
          (i32x4.dot_i16x8_s (v128.load8x8_s offset=32 (local.get $code)) (v128.load offset=64 (local.get $asked)))))
        (local.set $other (i32x4.add (local.get $other)
          (i32x4.dot_i16x8_s (v128.load8x8_s offset=40 (local.get $code)) (v128.load offset=80 (local.get $asked)))))
        (local.set $one (i32x4.add (local.get $one)
          (i32x4.dot_i16x8_s (v128.load8x8_s offset=48 (local.get $code)) (v128.load offset=96 (local.get $asked)))))
        (local.set $other (i32x4.add (local.get $other)
          (i32x4.dot_i16x8_s (v128.load8x8_s offset=56 (local.get $code)) (v128.load offset=112 (local.get $asked)))))
        (local.set $asked (i32.add (local.get $asked) (i32.const 128)))
        (local.set $code (i32.add (local.get $code) (i32.const 64)))
        (br_if $block (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
      (local.set $one (i32x4.add (local.get $one) (local.get $other)))
      (i32.store (local.get $out)
        (i32.add
          (i32.add (i32x4.extract_lane 0 (local.get $one)) (i32x4.extract_lane 1 (local.get $one)))
          (i32.add (i32x4.extract_lane 2 (local.get $one)) (i32x4.extract_lane 3 (local.get $one)))))
      (local.set $out (i32.add (local.get $out) (i32.const 4)))
      (local.set $places (i32.add (local.get $places) (i32.const 4)))
      (br_if $each (local.tee $count (i32.sub (local.get $count) (i32.const 1)))))))
