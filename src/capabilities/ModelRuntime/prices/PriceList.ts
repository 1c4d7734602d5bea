/**
 * Providers' list prices of their models, in US dollars per million tokens. docs/usage.md says where each list was read
 * and what could not be checked. An unlisted model has no price, because a guess would be mistaken for a bill.
 */

export interface ListedPrice {
  /** The name of a model, or a prefix of it followed by `*`. */
  readonly model: string
  readonly input: number
  readonly cachedInput: number
  readonly output: number
  /** Prices for the whole request if its input is longer than the threshold. */
  readonly long?: {
    readonly above: number
    readonly input: number
    readonly cachedInput: number
    readonly output: number
  }
}

export interface PriceList {
  /** The address of the list. */
  readonly name: string
  /** The day on which its prices were checked. */
  readonly asOf: string
  readonly prices: ReadonlyArray<ListedPrice>
}

const flatPrice = (model: string, input: number, cachedInput: number, output: number): ListedPrice => ({
  model,
  input,
  cachedInput,
  output
})

/** Doubles the input price and raises the output price by half if the input exceeds 272,000 tokens. */
const tiered = (model: string, input: number, cachedInput: number, output: number): ListedPrice => ({
  ...flatPrice(model, input, cachedInput, output),
  long: { above: 272_000, input: input * 2, cachedInput: cachedInput * 2, output: output * 1.5 }
})

const openai: PriceList = {
  name: "https://developers.openai.com/api/docs/pricing",
  asOf: "2026-10-27",
  prices: [
    tiered("gpt-6.1-sol", 2, 0.1, 10),
    tiered("gpt-6.1-terra", 1, 0.05, 5),
    tiered("gpt-6-astra", 10, 1, 50),
    tiered("gpt-6-sol", 2, 0.2, 10),
    tiered("gpt-6-luna", 0.1, 0.01, 0.5),
    tiered("gpt-5.6-sol", 4, 0.4, 20),
    tiered("gpt-5.6-terra", 2, 0.2, 12),
    tiered("gpt-5.6-luna", 0.2, 0.02, 1.2),
    tiered("gpt-5.5", 5, 0.5, 30),
    tiered("gpt-5.4", 2.5, 0.25, 15),
    flatPrice("gpt-5.4-mini", 0.75, 0.075, 4.5),
    flatPrice("gpt-5.4-nano", 0.2, 0.02, 1.25),
    flatPrice("gpt-5.2", 1.75, 0.175, 14),
    flatPrice("gpt-5.1", 1.25, 0.125, 10),
    flatPrice("gpt-4.1", 2, 0.5, 8),
    flatPrice("gpt-4.1-mini", 0.4, 0.1, 1.6),
    flatPrice("gpt-4o", 2.5, 1.25, 10),
    flatPrice("gpt-4o-mini", 0.15, 0.075, 0.6)
  ]
}

const anthropic: PriceList = {
  name: "https://platform.claude.com/docs/en/about-claude/pricing",
  asOf: "2026-10-24",
  prices: [
    flatPrice("claude-fable-5-1", 10, 0.25, 50),
    flatPrice("claude-fable-5", 10, 1, 50),
    flatPrice("claude-opus-5-5", 4, 0.2, 20),
    flatPrice("claude-opus-5", 5, 0.5, 25),
    flatPrice("claude-opus-4-8", 5, 0.5, 25),
    flatPrice("claude-opus-4-7", 5, 0.5, 25),
    flatPrice("claude-opus-4-6", 5, 0.5, 25),
    flatPrice("claude-opus-4-5", 5, 0.5, 25),
    flatPrice("claude-sonnet-5-5", 2, 0.1, 10),
    flatPrice("claude-sonnet-5", 2, 0.2, 10),
    flatPrice("claude-sonnet-4-6", 3, 0.3, 15),
    {
      ...flatPrice("claude-haiku-5-5", 0.1, 0.01, 0.5),
      long: { above: 100_000, input: 0.5, cachedInput: 0.05, output: 2.5 }
    },
    flatPrice("claude-haiku-4-5", 1, 0.1, 5)
  ]
}

/** By the host of the provider's address. Other hosts with models of the same names have their own prices. */
export const priceLists: ReadonlyMap<string, PriceList> = new Map([
  ["api.openai.com", openai],
  ["api.anthropic.com", anthropic]
])
