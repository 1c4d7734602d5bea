/** What a model, a customer or a colleague wrote, as elements: never as HTML. */
import { Fragment, type ReactNode } from "react"
import { type Block, blocks, type Inline } from "../../Markdown.ts"
import css from "./Prose.module.css"

interface Props {
  readonly text: string
  /** What stands for `[index]`; the mark itself by default. */
  readonly citation?: (index: number) => ReactNode
}

const Words = ({
  parts,
  citation
}: {
  readonly parts: ReadonlyArray<Inline>
  readonly citation: Props["citation"]
}): ReactNode =>
  parts.map((part, place) => {
    switch (part.kind) {
      case "text":
        return <Fragment key={place}>{part.text}</Fragment>
      case "code":
        return <code key={place}>{part.text}</code>
      case "break":
        return <br key={place} />
      case "citation":
        return <Fragment key={place}>{citation?.(part.index) ?? `[${part.index}]`}</Fragment>
      case "link":
        return (
          <a key={place} href={part.href} target="_blank" rel="noopener noreferrer nofollow">
            {part.text}
          </a>
        )
      case "strong":
        return (
          <strong key={place}>
            <Words parts={part.content} citation={citation} />
          </strong>
        )
      case "emphasis":
        return (
          <em key={place}>
            <Words parts={part.content} citation={citation} />
          </em>
        )
      default:
        return null
    }
  })

const Element = ({ block, citation }: { readonly block: Block; readonly citation: Props["citation"] }) => {
  switch (block.kind) {
    case "paragraph":
      return (
        <p>
          <Words parts={block.content} citation={citation} />
        </p>
      )
    case "heading":
      return (
        <p className={css["heading"]}>
          <Words parts={block.content} citation={citation} />
        </p>
      )
    case "quote":
      return (
        <blockquote>
          <Words parts={block.content} citation={citation} />
        </blockquote>
      )
    case "code":
      return <pre tabIndex={0}>{block.text}</pre>
    case "list": {
      const items = block.items.map((item, place) => (
        <li key={place}>
          <Words parts={item} citation={citation} />
        </li>
      ))
      return block.ordered ? <ol>{items}</ol> : <ul>{items}</ul>
    }
    case "table":
      return (
        <div className={css["table"]} tabIndex={0}>
          <table>
            <thead>
              <tr>
                {block.head.map((cell, place) => (
                  <th key={place} scope="col">
                    <Words parts={cell} citation={citation} />
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row, place) => (
                <tr key={place}>
                  {row.map((cell, column) => (
                    <td key={column}>
                      <Words parts={cell} citation={citation} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )
    default:
      return null
  }
}

export const Prose = ({ text, citation }: Props) => (
  <div className={css["prose"]}>
    {blocks(text).map((block, place) => (
      <Element key={place} block={block} citation={citation} />
    ))}
  </div>
)
