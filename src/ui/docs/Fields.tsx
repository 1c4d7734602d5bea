/** @jsxImportSource preact */
/** The members of a schema. Nested schemas are rendered when they are opened. */
import { useState } from "preact/hooks"
import { inlineCode } from "./inlineCode.tsx"
import { boundsOf, type Description, resolveRef, type SchemaNode, typeOf } from "./Description.ts"

interface Props {
  readonly description: Description
  readonly node: SchemaNode
}

/** The object schemas of `node`: itself, the items of an array, or the choices of a union. */
const objectSchemas = (description: Description, node: SchemaNode): ReadonlyArray<SchemaNode> => {
  const resolved = resolveRef(description, node)
  const choices = resolved.anyOf ?? resolved.oneOf
  if (choices !== undefined) return choices.flatMap((one) => objectSchemas(description, one))
  if (resolved.items !== undefined) return objectSchemas(description, resolved.items)
  return resolved.properties === undefined ? [] : [resolved]
}

const Nested = ({ description, node }: Props) => {
  const [isOpen, setOpen] = useState(false)
  if (objectSchemas(description, node).length === 0) return null
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="soft">Members</summary>
      {isOpen ? <Fields description={description} node={node} /> : null}
    </details>
  )
}

export const Fields = ({ description, node }: Props) => (
  <>
    {objectSchemas(description, node).map(({ properties = {}, required = [] }, index) => (
      <ul class="fields" key={index}>
        {Object.entries(properties).map(([name, member]) => {
          const resolved = resolveRef(description, member)
          const text = member.description ?? resolved.description
          return (
            <li key={name}>
              <code>{name}</code> <span class="soft">{typeOf(member)}</span>{" "}
              {required.includes(name) ? <span class="required">required</span> : null}{" "}
              <span class="soft">{boundsOf(resolved)}</span>
              {text === undefined ? null : <div>{inlineCode(text)}</div>}
              <Nested description={description} node={member} />
            </li>
          )
        })}
      </ul>
    ))}
  </>
)
