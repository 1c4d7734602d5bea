/** @jsxImportSource preact */
/** A reply as elements: no HTML of the model's, no images, and links that say where they lead (guarantee G33). */
import type { ComponentChildren, VNode } from "preact"
import { type Block, blocks, type Inline } from "../Markdown.ts"

interface Marks {
  /** What stands for `[index]`; null leaves it as text. */
  readonly citation: (index: number) => VNode | null
}

const leadsTo = (href: string) => href.replace(/^mailto:/u, "")

export const Link = ({ children, href }: { readonly href: string; readonly children: ComponentChildren }) => (
  <a href={href} target="_blank" rel="noopener noreferrer nofollow">
    {children}
  </a>
)

const part = (inline: Inline, marks: Marks): ComponentChildren => {
  switch (inline.kind) {
    case "text":
      return inline.text
    case "code":
      return <code>{inline.text}</code>
    case "strong":
      return <strong>{parts(inline.content, marks)}</strong>
    case "emphasis":
      return <em>{parts(inline.content, marks)}</em>
    case "break":
      return <br />
    case "citation":
      return marks.citation(inline.index) ?? `[${inline.index}]`
    case "link": {
      const shown = leadsTo(inline.href)
      return inline.text === shown || inline.text === inline.href ? (
        <Link href={inline.href}>{inline.text}</Link>
      ) : (
        <Link href={inline.href}>{`${inline.text} (${shown})`}</Link>
      )
    }
  }
}

const parts = (inlines: ReadonlyArray<Inline>, marks: Marks): ComponentChildren =>
  inlines.map((inline) => part(inline, marks))

const List = ({ items, marks, ordered }: Extract<Block, { kind: "list" }> & { readonly marks: Marks }) => {
  const children = items.map((item) => <li>{parts(item, marks)}</li>)
  return ordered ? <ol>{children}</ol> : <ul>{children}</ul>
}

const block = (found: Block, marks: Marks): VNode => {
  switch (found.kind) {
    case "paragraph":
      return <p>{parts(found.content, marks)}</p>
    case "heading":
      return (
        <p>
          <strong>{parts(found.content, marks)}</strong>
        </p>
      )
    case "quote":
      return <blockquote>{parts(found.content, marks)}</blockquote>
    case "code":
      return (
        <pre>
          <code>{found.text}</code>
        </pre>
      )
    case "list":
      return <List {...found} marks={marks} />
    case "table":
      return (
        <table>
          <thead>
            <tr>
              {found.head.map((cell) => (
                <th>{parts(cell, marks)}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {found.rows.map((row) => (
              <tr>
                {row.map((cell) => (
                  <td>{parts(cell, marks)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )
  }
}

export const Prose = ({ citation = () => null, text }: Partial<Marks> & { readonly text: string }): VNode => (
  <div class="prose">{blocks(text).map((found) => block(found, { citation }))}</div>
)
