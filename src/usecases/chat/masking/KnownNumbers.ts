/** Numbers of a turn that are personal data, by their digits. They are found however they are written. */
import type { Groups } from "./NumberRows.ts"

/** Minimum and maximum digits of a number that is found in other forms. */
const minDigits = 7
const maxDigits = 19
/** Number of digits that are compared first, because most places have no known number. */
const prefixDigits = 4

export interface KnownNumber {
  readonly kind: string
  /** The last group of the number in its row. */
  readonly to: number
}

export class KnownNumbers {
  private readonly kinds = new Map<string, string>()
  private readonly prefixes = new Set<string>()

  get size(): number {
    return this.kinds.size
  }

  add(digits: string, kind: string): void {
    if (digits.length < minDigits) return
    this.kinds.set(digits, kind)
    this.prefixes.add(digits.slice(0, prefixDigits))
  }

  has(digits: string): boolean {
    return this.kinds.has(digits)
  }

  /** The longest known number that begins at group `from`, or null. */
  at(groups: Groups, from: number): KnownNumber | null {
    if (this.kinds.size === 0) return null
    let digits = ""
    let longest: KnownNumber | null = null
    for (let to = from; to < groups.length; to++) {
      const { length } = digits
      digits += groups[to]?.digits ?? ""
      if (digits.length > maxDigits) break
      if (
        length < prefixDigits &&
        digits.length >= prefixDigits &&
        !this.prefixes.has(digits.slice(0, prefixDigits))
      )
        break
      const kind = digits.length < minDigits ? undefined : this.kinds.get(digits)
      if (kind !== undefined) longest = { kind, to }
    }
    return longest
  }
}
