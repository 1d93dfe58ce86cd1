! SPDX-License-Identifier: MIT
!
! polyglot.f90 - raises every type of field N times; the same in each language, see tests/e2e/polyglot.py
program polyglot
  use, intrinsic :: iso_c_binding
  use pem_polyglot
  implicit none
  integer(c_int8_t), parameter :: l = language_fortran
  character(len=12) :: argument
  integer(c_int32_t) :: i, n

  n = 0
  call get_command_argument(1, argument)
  if (argument /= '') read (argument, *) n
  do i = 0, n - 1
    call pem_notify_polyglot_work_begin(l, i)
    call numbers(i)
    call texts(i)
    call shapes(i)
    call pem_notify_polyglot_work_end(l, i)
  end do

contains

  ! The low 8 or 16 bits of a number, as Fortran has no unsigned kinds.
  integer(c_int8_t) function low8(number)
    integer(c_int32_t), intent(in) :: number
    low8 = int(mod(number + 128, 256) - 128, c_int8_t)
  end function

  integer(c_int16_t) function low16(number)
    integer(c_int32_t), intent(in) :: number
    low16 = int(mod(number + 32768, 65536) - 32768, c_int16_t)
  end function

  subroutine numbers(i)
    integer(c_int32_t), intent(in) :: i
    integer(c_int64_t) :: big

    big = i * 1000000007_c_int64_t
    call pem_notify_polyglot_numbers(l, int(-mod(i, 100), c_int8_t), low8(i), int(-mod(i, 30000), c_int16_t), &
      low16(i), -mod(i, 1000000) * 2, i * 3, -big, big, real(i, c_float) / 4, i / 8.0_c_double, &
      4096 + i * 16_c_int64_t, int(mod(i, 8), c_int16_t))
  end subroutine

  subroutine texts(i)
    integer(c_int32_t), intent(in) :: i
    integer(c_int32_t) :: k
    character(len=20) :: name, tail

    write (name, '(a, i0)') 'näme-', i
    write (tail, '(a, i0)') 't', mod(i, 10)
    call pem_notify_polyglot_texts(l, name, [(k * i - 4, k = 0, mod(i, 9) - 1)], tail)
  end subroutine

  subroutine shapes(i)
    integer(c_int32_t), intent(in) :: i
    integer(c_int16_t) :: weight

    weight = int(mod(i, 1000), c_int16_t)
    call pem_notify_polyglot_shapes(l, low8(i), i * 0.5_c_double, i * 0.25_c_double, i * 1.5_c_double, &
      i * 1.25_c_double, [weight, weight + 1_c_int16_t, weight + 2_c_int16_t], i)
  end subroutine
end program
