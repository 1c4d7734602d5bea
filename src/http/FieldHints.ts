/**
 * Hints about undeclared fields and query parameters of `/v1`. Such requests are served, because clients may be newer
 * than the server. The header `x-spoke-warning` names the fields.
 */
import * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import { unknownField } from "../domain/UnknownField.ts"
import * as Headers from "./server/Headers.ts"
import * as Routes from "./Routes.ts"

/** Maximum hints of one response. */
const maxHints = 5

/** The declared shape of a value: any content, or the fields of an object and the items of an array. */
type Shape = "open" | { readonly fields: ReadonlyMap<string, Shape> | null; readonly items: Shape | null }

const scalar: Shape = { fields: null, items: null }

const mergeFields = (
  one: ReadonlyMap<string, Shape> | null,
  other: ReadonlyMap<string, Shape> | null
): ReadonlyMap<string, Shape> | null => {
  if (one === null || other === null) return one ?? other
  const all = new Map(one)
  for (const [name, shape] of other) all.set(name, mergeShapes(all.get(name) ?? scalar, shape))
  return all
}

/** Union of both shapes. */
const mergeShapes = (one: Shape, other: Shape): Shape =>
  one === "open" || other === "open"
    ? "open"
    : {
        fields: mergeFields(one.fields, other.fields),
        items:
          one.items === null || other.items === null
            ? (one.items ?? other.items)
            : mergeShapes(one.items, other.items)
      }

/** The shape of a schema's encoded side. */
const shapeOf = (ast: AST.AST): Shape => {
  if (AST.isRefinement(ast) || AST.isTransformation(ast)) return shapeOf(ast.from)
  if (AST.isUnion(ast)) return ast.types.map(shapeOf).reduce(mergeShapes, scalar)
  if (AST.isTupleType(ast)) {
    const items = [...ast.elements, ...ast.rest].map(({ type }) => shapeOf(type)).reduce(mergeShapes, scalar)
    return { fields: null, items }
  }
  if (AST.isTypeLiteral(ast)) {
    if (ast.indexSignatures.length > 0) return "open"
    const fields = ast.propertySignatures.map(({ name, type }) => [String(name), shapeOf(type)] as const)
    return { fields: new Map(fields), items: null }
  }
  return AST.isDeclaration(ast) ||
    AST.isSuspend(ast) ||
    AST.isObjectKeyword(ast) ||
    AST.isUnknownKeyword(ast) ||
    AST.isAnyKeyword(ast)
    ? "open"
    : scalar
}

/** Appends unknown fields to `found` up to the maximum; the rest of the body is not checked. */
const collectUnknown = (
  shape: Shape,
  value: unknown,
  path: ReadonlyArray<string | number>,
  found: Array<string>
): void => {
  if (shape === "open" || typeof value !== "object" || value === null || found.length >= maxHints) return
  if (Array.isArray(value)) {
    const { items } = shape
    if (items === null || items === "open") return
    for (const [index, item] of value.entries()) {
      if (found.length >= maxHints) return
      collectUnknown(items, item, [...path, index], found)
    }
    return
  }
  if (shape.fields === null) return
  for (const [name, member] of Object.entries(value)) {
    if (found.length >= maxHints) return
    const fieldShape = shape.fields.get(name)
    if (fieldShape === undefined) found.push(unknownField(path, name, shape.fields.keys()))
    else collectUnknown(fieldShape, member, [...path, name], found)
  }
}

const hintsOf = (shape: Shape, value: unknown): ReadonlyArray<string> => {
  const found: Array<string> = []
  collectUnknown(shape, value, [], found)
  return found
}

/** `route` is the key of a route: its method and pattern. */
export interface FieldHints {
  /** Records unknown fields of a body for the response to the current request. */
  readonly body: (route: string, value: unknown) => Effect.Effect<void>
  /** Records unknown query parameters of `url`. */
  readonly query: (route: string, url: string) => Effect.Effect<void>
}

const header = "x-spoke-warning"

const addHints = (hints: ReadonlyArray<string>) =>
  hints.length === 0
    ? Effect.void
    : FiberRef.update(Headers.extra, (others) => {
        const existing = others[header]?.split(", ") ?? []
        return { ...others, [header]: [...new Set([...existing, ...hints])].slice(0, maxHints).join(", ") }
      })

/** The encoded side of `schema`, or an object without fields. */
const encodedShapeOf = (schema: Option.Option<Schema.Schema.All>): Shape =>
  Option.match(schema, {
    onNone: () => ({ fields: new Map(), items: null }),
    onSome: ({ ast }) => shapeOf(AST.encodedAST(ast))
  })

/** Builds the hints from the declarations of `api`. */
export const make = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>
): FieldHints => {
  const shapes = new Map<string, { readonly body: Shape; readonly query: Shape }>()
  HttpApi.reflect(api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) => {
      if (!endpoint.path.startsWith("/v1/")) return
      shapes.set(Routes.keyOf(endpoint), {
        body: encodedShapeOf(endpoint.payloadSchema),
        query: encodedShapeOf(endpoint.urlParamsSchema)
      })
    }
  })
  return {
    body: (route, value) => Effect.suspend(() => addHints(hintsOf(shapes.get(route)?.body ?? "open", value))),
    query: (route, url) =>
      Effect.suspend(() => {
        const queryStart = url.indexOf("?")
        const shape = queryStart === -1 ? "open" : (shapes.get(route)?.query ?? "open")
        return shape === "open"
          ? Effect.void
          : addHints(hintsOf(shape, Object.fromEntries(new URLSearchParams(url.slice(queryStart + 1)))))
      })
  }
}
