/** Loaded into a server (`NODE_OPTIONS=--import`) whose clock is to be wrong by FAULT_SKEW milliseconds. */
const by = Number(process.env["FAULT_SKEW"] ?? 0)
const Right = Date

if (by !== 0) {
  globalThis.Date = class extends Right {
    constructor(...given) {
      if (given.length === 0) super(Right.now() + by)
      else super(...given)
    }
    static now() {
      return Right.now() + by
    }
  }
}
