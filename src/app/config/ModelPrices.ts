/** Prices of models from the operator, in US dollars per million tokens. */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import type { ListedPrice } from "../../capabilities/ModelRuntime/prices/PriceList.ts"
import { Value } from "./ConfigValues.ts"

const Usd = Schema.Number.pipe(Schema.between(0, 1_000_000))

const Rates = Schema.Struct({
  input: Usd,
  /** The price of `input` by default. */
  cachedInput: Schema.optionalWith(Usd, { exact: true }),
  output: Usd
})

const Entry = Schema.Struct({
  /** `provider/model`. A final `*` matches any suffix. */
  model: Schema.String.pipe(Schema.pattern(/^[a-z][a-z0-9-]{0,31}\/[^\s*]*\*?$/u)),
  ...Rates.fields,
  /** Prices for requests with more than `above` input tokens. */
  long: Schema.optionalWith(Schema.Struct({ above: Schema.Int.pipe(Schema.positive()), ...Rates.fields }), {
    exact: true
  })
})

const decode = Schema.decodeUnknownEither(Schema.parseJson(Schema.Array(Entry)), {
  errors: "all",
  onExcessProperty: "error"
})

const withCached = <A extends typeof Rates.Type>({ cachedInput, ...rates }: A) => ({
  ...rates,
  cachedInput: cachedInput ?? rates.input
})

const priceOf = ({ long, ...price }: typeof Entry.Type): ListedPrice => ({
  ...withCached(price),
  ...(long === undefined ? {} : { long: withCached(long) })
})

/** The places of the errors: an entry's number from 1, and the field's name. Values are not included. */
const placesOf = (error: ParseResult.ParseError): string => {
  const places = ParseResult.ArrayFormatter.formatErrorSync(error).flatMap(({ path: [entry, ...field] }) =>
    typeof entry === "number" ? [`entry ${entry + 1}${field.length === 0 ? "" : `, ${field.join(".")}`}`] : []
  )
  return places.length === 0 ? "" : ` (see ${[...new Set(places)].join("; ")})`
}

const expected =
  "Expected a JSON list of objects of model (provider/model, * at its end for any rest), input, output and, if they differ, cachedInput and long"

export const ModelPrices = Schema.transformOrFail(
  Value,
  Schema.declare((_: unknown): _ is ReadonlyArray<ListedPrice> => true),
  {
    strict: true,
    decode: (text, _, ast) =>
      Either.mapBoth(decode(text), {
        onLeft: (error) => new ParseResult.Type(ast, text, `${expected}${placesOf(error)}`),
        onRight: (entries) => entries.map(priceOf)
      }),
    encode: (value, _, ast) =>
      ParseResult.fail(new ParseResult.Forbidden(ast, value, "A configuration is only read"))
  }
)
