import { hasActiveJob, isNeverRead, type SourceDetail, type SourceItem } from "../../api/Sources.ts"
import { Badge } from "../../components/Badge.tsx"
import { Progress } from "../../components/Progress.tsx"
import { useText } from "../../text/Language.tsx"
import { tones, words } from "./words.ts"

/** The state, or a progress bar while a job runs. */
export const SourceState = ({ source }: { readonly source: SourceItem | SourceDetail }) => {
  const t = useText(words)
  const { latestJob, status } = source
  if (isNeverRead(source)) return <Badge tone="warn">{t.untouched}</Badge>
  return hasActiveJob(source) && latestJob !== null ? (
    <Progress label={latestJob.status === "QUEUED" ? t.QUEUED : t.PROCESSING} value={latestJob.progress} />
  ) : (
    <Badge tone={tones[status]}>{t[status]}</Badge>
  )
}
