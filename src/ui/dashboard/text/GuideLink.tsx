/** A link from a setting to what the documentation says of it. It opens a tab of its own, so that no edit is lost. */
import { everywhere } from "./everywhere.ts"
import { useText } from "./Language.tsx"

interface Props {
  /** Page and heading: `chat`, or `chat#models`. */
  readonly guide: string
  /** Its subject, for screen readers; omitted where the text before it names the subject. */
  readonly about?: string
}

export const GuideLink = ({ about, guide }: Props) => {
  const t = useText(everywhere)
  return (
    <a href={`/docs/guide/${guide}`} target="_blank" rel="noopener">
      {t.guide}
      {about === undefined ? null : <span className="visually-hidden">: {about}</span>}
    </a>
  )
}
