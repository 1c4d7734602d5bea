/** A link to the documentation. It opens a new tab, so that no input is lost. */
import { commonTexts } from "./commonTexts.ts"
import { useText } from "./Language.tsx"

interface Props {
  /** Page and heading: `chat`, or `chat#models`. */
  readonly guide: string
  /** Its subject, for screen readers; omitted where the text before it names the subject. */
  readonly about?: string
}

export const GuideLink = ({ about, guide }: Props) => {
  const t = useText(commonTexts)
  return (
    <a href={`/docs/guide/${guide}`} target="_blank" rel="noopener">
      {t.guide}
      {about === undefined ? null : <span className="visually-hidden">: {about}</span>}
    </a>
  )
}
