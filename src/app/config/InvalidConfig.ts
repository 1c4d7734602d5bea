import * as Schema from "effect/Schema"

/** Problems of the configuration. The service does not start. */
export class InvalidConfig extends Schema.TaggedError<InvalidConfig>()("InvalidConfig", {
  problems: Schema.Array(Schema.Struct({ variable: Schema.String, message: Schema.String }))
}) {
  override get message() {
    const lines = this.problems.map(({ variable: name, message }) => `  ${name}: ${message}`)
    return ["The configuration is invalid. Correct it and start Spoke again:", ...lines].join("\n")
  }
}
