/** Proleptic Gregorian calendar on days since 1970-01-01, in plain arithmetic: no Date, no time zone, exact below zero. */

export interface Civil {
  year: number;
  /** 1 .. 12 */
  month: number;
  /** 1 .. 31 */
  day: number;
}

/** Days of 400 years. */
const ERA_DAYS = 146_097;
/** Days from 0000-03-01, the start of an era, to 1970-01-01. */
const EPOCH_SHIFT = 719_468;

/** Date of a day number. Years start in March inside, so that the leap day is the last of a year. */
export function civilOfDay(day: number): Civil {
  const shifted = day + EPOCH_SHIFT;
  const era = Math.floor(shifted / ERA_DAYS);
  const dayOfEra = shifted - era * ERA_DAYS;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const marchMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * marchMonth + 2) / 5) + 1,
  };
}

/** Day number of a date. The month may lie outside 1 .. 12; it is carried into the year. */
export function dayOfCivil(year: number, month: number, day: number): number {
  const carried = year + Math.floor((month - 1) / 12);
  const normal = month - 1 - Math.floor((month - 1) / 12) * 12 + 1;
  const marchYear = normal <= 2 ? carried - 1 : carried;
  const era = Math.floor(marchYear / 400);
  const yearOfEra = marchYear - era * 400;
  const dayOfYear = Math.floor((153 * (normal > 2 ? normal - 3 : normal + 9) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * ERA_DAYS + dayOfEra - EPOCH_SHIFT;
}

/** `2026-01-03`. Only for years 0001 to 9999; others give null. */
export function dateText(day: number): string | null {
  const { year, month, day: date } = civilOfDay(day);
  if (year < 1 || year > 9999) return null;
  return `${pad(year, 4)}-${pad(month, 2)}-${pad(date, 2)}`;
}

/** Decimal digits with leading zeros. */
export function pad(value: number, width: number): string {
  return String(value).padStart(width, '0');
}
