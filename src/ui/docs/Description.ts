/** The parts of the OpenAPI description (`/openapi.json`) that the reference displays. */

export interface SchemaNode {
  readonly $ref?: string
  readonly type?: string
  readonly description?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly required?: ReadonlyArray<string>
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly additionalProperties?: boolean | SchemaNode
  readonly items?: SchemaNode
  readonly anyOf?: ReadonlyArray<SchemaNode>
  readonly oneOf?: ReadonlyArray<SchemaNode>
}

interface Content {
  readonly schema?: SchemaNode
  readonly example?: unknown
}

export interface Parameter {
  readonly name: string
  readonly in: "path" | "query" | "header"
  readonly required?: boolean
  readonly description?: string
  readonly schema?: SchemaNode
}

export interface Operation {
  readonly operationId: string
  readonly summary?: string
  readonly description?: string
  readonly tags?: ReadonlyArray<string>
  readonly parameters?: ReadonlyArray<Parameter>
  readonly security?: ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>>
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> }
  readonly responses: Readonly<
    Record<string, { readonly description?: string; readonly content?: Readonly<Record<string, Content>> }>
  >
}

export interface Description {
  readonly tags?: ReadonlyArray<{ readonly name: string; readonly description?: string }>
  readonly servers?: ReadonlyArray<{ readonly url: string }>
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components?: { readonly schemas?: Readonly<Record<string, SchemaNode>> }
}

/** An operation with its address. */
export interface Endpoint extends Operation {
  readonly method: string
  readonly path: string
}

const methods = ["get", "post", "put", "patch", "delete"]

/** The operations by tag, in the description's order. */
export const operationsByTag = ({
  paths,
  tags = []
}: Description): ReadonlyArray<readonly [string, ReadonlyArray<Endpoint>]> => {
  const all = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => methods.includes(method))
      .map(([method, operation]): Endpoint => ({ ...operation, method: method.toUpperCase(), path }))
  )
  const tagNames = [
    ...new Set([...tags.map(({ name }) => name), ...all.map(({ tags: [tag = ""] = [] }) => tag)])
  ]
  return tagNames
    .map((name) => [name, all.filter(({ tags: [tag = ""] = [] }) => tag === name)] as const)
    .filter(([, operations]) => operations.length > 0)
}

/** The schema that `$ref` names, or the schema itself. */
export const resolveRef = (description: Description, node: SchemaNode): SchemaNode => {
  const name = node.$ref?.split("/").at(-1)
  return name === undefined ? node : (description.components?.schemas?.[name] ?? {})
}

/** A short name of the type: `string`, `array of Citation`, `string or null`. */
export const typeOf = (node: SchemaNode): string => {
  if (node.$ref !== undefined) return node.$ref.split("/").at(-1) ?? "object"
  const choices = node.anyOf ?? node.oneOf
  if (choices !== undefined) return [...new Set(choices.map((one) => typeOf(one)))].join(" or ")
  if (node.enum !== undefined) return node.enum.map((value) => JSON.stringify(value)).join(" or ")
  if (node.type === "array") return `array of ${typeOf(node.items ?? {})}`
  return node.type ?? "any value"
}

const range = (min: number | undefined, max: number | undefined): string => {
  const number = (value: number) => value.toLocaleString("en")
  if (min === undefined) return max === undefined ? "" : `at most ${number(max)}`
  if (max === undefined) return `at least ${number(min)}`
  return min === max ? number(max) : `${number(min)} to ${number(max)}`
}

/** The bounds of a value as text; empty if there are none. */
export const boundsOf = ({ maxLength, maximum, minLength, minimum }: SchemaNode): string => {
  const length = range(minLength === 0 ? undefined : minLength, maxLength)
  const unit = (maxLength ?? minLength) === 1 ? "character" : "characters"
  return [range(minimum, maximum), length === "" ? "" : `${length} ${unit}`]
    .filter((text) => text !== "")
    .join(", ")
}
