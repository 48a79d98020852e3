const FORMAT: Intl.DateTimeFormatOptions = {
  day: 'numeric',
  month: 'long',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  timeZoneName: 'short'
}

/** A time in the time zone of the site; in UTC if there is no such zone. */
export const timeText = (at: Date, timeZone: string): string => {
  try {
    return new Intl.DateTimeFormat('en-GB', { ...FORMAT, timeZone }).format(at)
  } catch {
    return new Intl.DateTimeFormat('en-GB', { ...FORMAT, timeZone: 'UTC' }).format(at)
  }
}
